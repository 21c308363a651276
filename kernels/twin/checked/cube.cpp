// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "cube.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>

#include "common/tiling_math.h"
#include "rates.h"

namespace AscendC {
namespace check {
namespace {

double RoundUp(double value, double unit) { return std::ceil(value / unit) * unit; }

// Straight lines through the times that the measured rates are.
double CyclesToL1(int64_t bytes) {
  const auto time = [](const Point& p) { return p.at / p.value; };
  const double at = static_cast<double>(bytes);
  size_t i = 1;
  while (i + 1 < std::size(kToL1) && at > kToL1[i].at) ++i;
  const Point& a = kToL1[i - 1];
  const Point& b = kToL1[i];
  return time(a) + (at - a.at) * (time(b) - time(a)) / (b.at - a.at);
}

// Products per cycle of a block, by the side of a cube of its size.
double MmadRate(double m, double n, double k) {
  const double side = std::cbrt(m * n * k);
  if (side <= kMmad[0].at) return kMmad[0].value;
  for (size_t i = 1; i < std::size(kMmad); ++i) {
    const Point& a = kMmad[i - 1];
    const Point& b = kMmad[i];
    if (side <= b.at) return a.value + (b.value - a.value) * std::log2(side / a.at) / std::log2(b.at / a.at);
  }
  return kMmad[std::size(kMmad) - 1].value;
}

double Slowdown(const Product& p) { return p.elementBytes == 4 ? Of(kFp32Slowdown) : 1; }

double MmadCycles(const Product& p, double m, double n, double k) {
  const double unitK = 32.0 / p.elementBytes;
  const double products = RoundUp(m, 16) * RoundUp(n, 16) * RoundUp(k, unitK);
  return products * Slowdown(p) / MmadRate(RoundUp(m, 16), RoundUp(n, 16), RoundUp(k, unitK));
}

// The pieces of an operand that are in L1: as many as there are buffers, the oldest makes room.
class L1Pieces {
 public:
  L1Pieces(CubePipe* mte2, int buffers, bool alwaysThere, double ready)
      : mte2_(mte2), buffers_(static_cast<size_t>(std::max(1, buffers))), alwaysThere_(alwaysThere), ready_(ready) {}

  // When piece `index` of `bytes` is in L1; it comes from GM if it is not there.
  double Ready(int index, int64_t bytes) {
    if (alwaysThere_) return ready_;
    for (const Piece& piece : pieces_) {
      if (piece.index == index) return piece.ready;
    }
    double room = ready_;
    if (pieces_.size() == buffers_) {
      room = std::max(room, pieces_.front().used);
      pieces_.pop_front();
    }
    pieces_.push_back({index, mte2_->Run(room, CyclesToL1(bytes), bytes), 0});
    return pieces_.back().ready;
  }
  void Use(int index, double until) {
    for (Piece& piece : pieces_) {
      if (piece.index == index) piece.used = until;
    }
  }

 private:
  struct Piece {
    int index;
    double ready;
    double used;
  };
  CubePipe* mte2_;
  size_t buffers_;
  bool alwaysThere_;
  double ready_;
  std::deque<Piece> pieces_;
};

// When a buffer of a ring is free again.
class Ring {
 public:
  explicit Ring(int buffers) : free_(static_cast<size_t>(std::max(1, buffers)), 0.0) {}
  double& Next() { return free_[next_++ % free_.size()]; }

 private:
  std::vector<double> free_;
  size_t next_ = 0;
};

}  // namespace

double CubePipe::Run(double ready, double cycles, int64_t moved) {
  const double begin = std::max(free, ready);
  free = begin + cycles;
  busy += cycles;
  bytes += moved;
  ++count;
  return free;
}

double CubeCore::Load(double ready, int64_t bytes) { return mte2.Run(ready, CyclesToL1(bytes), bytes); }

double CubeCore::Multiply(double ready, const Product& p) {
  const TCubeTiling& t = p.tiling;
  const int64_t stepsK = mst::CeilDiv(p.k, t.baseK);
  const int64_t tilesM = mst::CeilDiv(p.m, t.baseM), tilesN = mst::CeilDiv(p.n, t.baseN);
  const int32_t stepKa = std::max(1, t.stepKa), stepKb = std::max(1, t.stepKb);
  L1Pieces a(&mte2, t.depthA1 / stepKa, p.aInL1, ready);
  L1Pieces b(&mte2, t.depthB1 / stepKb, p.bInL1, ready);
  const int64_t piecesA = mst::CeilDiv(stepsK, stepKa), piecesB = mst::CeilDiv(stepsK, stepKb);
  Ring l0(std::min(t.dbL0A, t.dbL0B)), l0c(t.dbL0C);
  double end = ready;
  for (int32_t tile = 0; tile < tilesM * tilesN; ++tile) {
    // iterateOrder 0: along M first.
    const int32_t tileM = t.iterateOrder == 0 ? tile % tilesM : tile / tilesN;
    const int32_t tileN = t.iterateOrder == 0 ? tile / tilesM : tile % tilesN;
    const int64_t m = std::min(t.baseM, p.m - tileM * t.baseM);
    const int64_t n = std::min(t.baseN, p.n - tileN * t.baseN);
    double& out = l0c.Next();
    double summed = 0;
    for (int32_t step = 0; step < stepsK; ++step) {
      const int64_t k = std::min(t.baseK, p.k - step * t.baseK);
      const auto pieceBytes = [&](int32_t perPiece, int64_t rows) {
        const int32_t first = step / perPiece * perPiece * t.baseK;
        return rows * std::min(perPiece * t.baseK, p.k - first) * p.elementBytes;
      };
      const int32_t pieceA = tileM * piecesA + step / stepKa, pieceB = tileN * piecesB + step / stepKb;
      const double inL1 = std::max(a.Ready(pieceA, pieceBytes(stepKa, m)), b.Ready(pieceB, pieceBytes(stepKb, n)));
      double& buffer = l0.Next();
      const int64_t aBytes = m * k * p.elementBytes, bBytes = k * n * p.elementBytes;
      const double toL0 = static_cast<double>(aBytes) / Of(kToL0ARate) + static_cast<double>(bBytes) / Of(kToL0BRate);
      const double inL0 = mte1.Run(std::max(inL1, buffer), toL0, aBytes + bBytes);
      a.Use(pieceA, inL0);
      b.Use(pieceB, inL0);
      summed = this->m.Run(std::max(inL0, step == 0 ? out : 0), MmadCycles(p, m, n, k), 0);
      buffer = summed;
    }
    const int64_t cBytes = m * n * 4;
    end = out = fix.Run(summed, static_cast<double>(cBytes) / Of(kFixpipeRate), cBytes);
  }
  return end;
}

double PeakCycles(const Product& p) { return static_cast<double>(p.m) * p.n * p.k * Slowdown(p) / kMmadPeak; }

}  // namespace check
}  // namespace AscendC
