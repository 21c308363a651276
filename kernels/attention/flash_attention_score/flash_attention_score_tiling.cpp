// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "attention/flash_attention_score/flash_attention_score_tiling.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "attention/flash_attention_score/flash_attention_score_band.h"
#include "attention/flash_attention_score/flash_attention_score_plan.h"
#include "common/tiling_math.h"

namespace mst {
namespace {

constexpr int64_t kMaxSuperRows = 16384;  // rows that one copy into L1 can have
constexpr int64_t kStateRows = 2048;      // query rows of a unit whose state is kept between super-blocks

// Best first, for the CPU; the last fits everywhere. Products of 16 bits take longer to store than to compute: fewer
// rows for them.
constexpr FlashCandidate kCpuCandidates[] = {{192, 512, 4}, {96, 512, 4},  {64, 512, 4}, {32, 256, 8},
                                             {32, 128, 16}, {16, 128, 16}, {16, 64, 16}, {16, 32, 16}};
// Best first by the cost model, for the card: products are read and written once for a block's keys, keys once for its
// rows, and the vector unit waits for results as often for a small strip as for a large one.
constexpr FlashCandidate kCardCandidates[] = {{176, 1024, 8}, {128, 512, 16}, {128, 512, 8}, {128, 256, 32},
                                              {128, 256, 16}, {64, 256, 16},  {64, 128, 16}, {32, 128, 16},
                                              {16, 128, 16},  {16, 64, 16}};
constexpr int64_t kMaxPieces = 4;   // in which a key block may come to L1 of the card
constexpr int64_t kFewKeys = 4096;  // with less, what a block computes beyond a diagonal counts
constexpr int32_t kMaxRowsOfShortDiagonal = 64;
constexpr int32_t kMaxRowsOf16Bits = 96;
constexpr int32_t kMaxStripRows = 16;

bool RowsAreFarApart(const FlashAttentionScoreShape& s) { return std::max({s.qRow, s.kRow, s.vRow}) > kFlashMaxPitch; }

int64_t StripFloats(const FlashCandidate& c, int64_t dvPad) {
  return std::max<int64_t>(int64_t{c.stripRows} * c.kvCols, dvPad);
}

// Of the buffer for probabilities, of which depth 1 has two, each for half of a strip. Those of 32 bits go out from
// where they are; then this is for rows of output. It takes at least one of these, and the statistics of 8 rows.
int64_t OutElements(const FlashAttentionScoreProblem& p, const FlashCandidate& c, int64_t dvPad, int32_t depth) {
  const int64_t most = p.elementBytes == 4 ? c.stripRows * dvPad : StripFloats(c, dvPad);
  return depth == 0 ? most : std::max({most / 2, dvPad, 16 * kFlashStatCopies * 4 / p.elementBytes});
}

// Bytes of the unified buffer, as the buffers of the forward kernel add up.
int64_t UbBytes(const FlashAttentionScoreProblem& p, const FlashCandidate& c, int64_t dvPad, int32_t depth) {
  const int64_t scores = (depth + 1) * StripFloats(c, dvPad) * 4;
  const int64_t products = depth * c.stripRows * dvPad * 4;
  const int64_t out = (depth + 1) * OutElements(p, c, dvPad, depth) * p.elementBytes;
  const int64_t valueRow = dvPad * (p.elementBytes + 4);
  const int64_t output = c.qRows * dvPad * 4;
  const int64_t spare = FlashSpareFloats(c.qRows, static_cast<int32_t>(dvPad), depth) * 4;
  const int64_t statistics = 3 * FlashPlaces(depth) * FlashStatFloats(c.qRows, depth) * 4;
  const int64_t softmax = depth * FlashSoftmaxBytes(c.stripRows, c.stripRows * c.kvCols);
  const int64_t strip = FlashStripBytes(p, c, FlashForwardWorkBytes(depth));
  const int64_t dense = RowsAreFarApart(p.shape) ? 3 * kFlashDenseBytes : 0;
  return scores + products + out + strip + softmax + valueRow + output + statistics + spare + dense;
}

// Keys and values that L1 has room for. Packing on the CPU may widen 16 bits to 32.
int64_t L1Rows(const FlashAttentionScoreProblem& p, const Platform& platform, const FlashCandidate& c, int64_t dPad,
               int64_t dvPad) {
  const int64_t left = FlashCubeLeftBytes(c.qRows, c.kvCols, kFlashCubeRows, p.elementBytes);
  const int64_t queries = RoundUp(c.qRows, kFlashFractalRows) * dPad * p.elementBytes;
  const int64_t rows = platform.isCpu() ? platform.l1Bytes / 8 * 5 / ((dPad + dvPad) * 4)
                                        : (FlashL1Bytes(platform, left) - queries) / ((dPad + dvPad) * p.elementBytes);
  return std::min(rows, RowsAreFarApart(p.shape) ? kFlashMaxDenseRows : kMaxSuperRows);
}

// Which keys of a block of rows cost time: the visible ones, in whole key blocks.
int64_t CostOf(const FlashBand& band, int64_t rowBegin, int64_t rowEnd, int64_t kvCols) {
  const int64_t begin = RoundDown(FlashKeyBegin(band, rowBegin), kvCols);
  const int64_t end = FlashKeyEnd(band, rowEnd);
  return kvCols / 4 + std::max<int64_t>(0, end - begin);  // each block has some fixed cost
}

// Splits the units into ranges of equal cost, in the order in which FlashUnitWalker counts them.
class UnitSplit {
 public:
  UnitSplit(const FlashAttentionScoreProblem& problem, const FlashAttentionScoreTiles& tiles)
      : problem_(problem), tiles_(tiles) {
    for (int64_t b = 0; b < problem.shape.B; ++b) {
      const bool sameAsBefore = b > 0 && problem.shape.packed == 0 && problem.prefix == nullptr;
      if (!sameAsBefore) AppendChunks(b);
      const int64_t first = sameAsBefore ? chunkBegin_.back() : lastChunks_;
      chunkBegin_.push_back(first);
      const int64_t chunks = static_cast<int64_t>(costs_.size()) - first;
      units_ += chunks * problem.shape.Nkv;
      for (int64_t i = first; i < first + chunks; ++i) total_ += costs_[i] * problem.shape.Nkv;
    }
  }

  int64_t units() const { return units_; }
  int64_t total() const { return total_; }

  void Fill(int32_t cores, int64_t* unitBegin) const {
    FlashUnitRanges ranges(cores, total_, unitBegin);
    for (size_t b = 0; b < chunkBegin_.size(); ++b) {
      const int64_t chunks = ChunksOf(b);
      for (int64_t i = 0; i < problem_.shape.Nkv * chunks; ++i) ranges.Add(costs_[chunkBegin_[b] + i % chunks]);
    }
    ranges.End();
  }

 private:
  int64_t ChunksOf(size_t b) const {
    return CeilDiv(FlashLengthsOf(problem_, static_cast<int64_t>(b)).rows, tiles_.chunkRows);
  }

  void AppendChunks(int64_t b) {
    lastChunks_ = static_cast<int64_t>(costs_.size());
    const FlashLengths lengths = FlashLengthsOf(problem_, b);
    const int64_t prefix = problem_.prefix == nullptr ? 0 : problem_.prefix[b];
    const FlashBand band = FlashBandOf(problem_.shape, b, lengths.rows, lengths.keys, prefix);
    for (int64_t chunk = 0; chunk < lengths.rows; chunk += tiles_.chunkRows) {
      int64_t cost = 0;
      const int64_t end = std::min<int64_t>(chunk + tiles_.chunkRows, lengths.rows);
      for (int64_t row = chunk; row < end; row += tiles_.qRows) {
        cost += CostOf(band, row, std::min<int64_t>(row + tiles_.qRows, end), tiles_.kvCols);
      }
      costs_.push_back(cost);
    }
  }

  const FlashAttentionScoreProblem& problem_;
  const FlashAttentionScoreTiles& tiles_;
  std::vector<int64_t> costs_;       // of chunks; shared by the batch where it is uniform
  std::vector<int64_t> chunkBegin_;  // of each sequence in costs_
  int64_t lastChunks_ = 0;
  int64_t units_ = 0;
  int64_t total_ = 0;
};

int32_t ColsUnit(const Platform& platform) { return platform.isCpu() ? kFlashColsUnit : kFlashCardCols; }
int32_t DepthOf(const Platform& platform) { return platform.isCpu() ? 0 : 1; }

// The candidate for so many rows and keys: no more columns than needed, blocks of equal height.
FlashCandidate Fitted(FlashCandidate c, const Platform& platform, const FlashLengths& longest) {
  while (c.kvCols / 2 >= std::max<int64_t>(longest.keys, ColsUnit(platform))) {
    c.kvCols /= 2;
    c.stripRows = std::max(c.stripRows, std::min(2 * c.stripRows, kMaxStripRows));
  }
  const int64_t rows = std::max<int64_t>(longest.rows, 1);
  const int64_t even = CeilDiv(rows, CeilDiv(rows, c.qRows));
  c.qRows = static_cast<int32_t>(platform.isCpu() ? RoundUp(even, c.stripRows) : even);
  return c;
}

// The first that fits UB and L1, or the last.
FlashCandidate CandidateFor(const FlashAttentionScoreProblem& p, const Platform& platform, const FlashLengths& longest,
                            int64_t dPad, int64_t dvPad) {
  const FlashCandidate* c = platform.isCpu() ? std::begin(kCpuCandidates) : std::begin(kCardCandidates);
  const FlashCandidate* end = platform.isCpu() ? std::end(kCpuCandidates) : std::end(kCardCandidates);
  const bool hasShortDiagonal = p.shape.sparseMode >= 2 && longest.keys < kFewKeys;
  int32_t mostRows = platform.isCpu() && p.elementBytes == 2 ? kMaxRowsOf16Bits : c->qRows;
  if (platform.isCpu() && hasShortDiagonal) mostRows = kMaxRowsOfShortDiagonal;
  FlashCandidate fitted = {};
  for (; c != end; ++c) {
    fitted = Fitted(*c, platform, longest);
    if (c->qRows > mostRows) continue;
    if (UbBytes(p, fitted, dvPad, DepthOf(platform)) <= platform.ubBytes &&
        fitted.kvCols <= (platform.isCpu() ? 1 : kMaxPieces) * L1Rows(p, platform, fitted, dPad, dvPad)) {
      break;
    }
  }
  return fitted;
}

// Rows of each of `pieces` of a key block.
int32_t PieceRows(int64_t kvCols, int64_t pieces) {
  return static_cast<int32_t>(RoundUp(CeilDiv(kvCols, pieces), kFlashFractalRows));
}

int64_t TasksOf(const FlashAttentionScoreShape& s, const Platform& platform) {
  const int64_t tasks = int64_t{platform.vectorCores} * platform.tasksPerCore;
  // With few heads several cores pack the same keys: then no more of them than there are threads.
  const int64_t cores = s.B * s.Nkv >= tasks ? tasks : platform.vectorCores;
  return std::min<int64_t>(cores, kFlashMaxCores);
}

}  // namespace

Status FlashAttentionScoreProblemOf(const OpArgs& args, FlashAttentionScoreProblem* problem) {
  return FlashAttentionProblemOf(args, problem);
}

Status FlashAttentionScoreTiling(const FlashAttentionScoreProblem& problem, const Platform& platform,
                                 FlashAttentionScoreTilingData* tiling) {
  const FlashAttentionScoreShape& s = problem.shape;
  FlashAttentionScoreTiles& t = tiling->tiles;
  tiling->shape = s;
  tiling->head = {0, 0, 0};
  if (s.B == 0 || s.Sq == 0) return Status::Ok();
  MST_RETURN_IF_ERROR(FlashCheckReadable("FlashAttentionScore", problem));
  const int64_t G = s.N / s.Nkv;
  t.dPad = static_cast<int32_t>(RoundUp(s.D, kFlashHeadPad));
  t.dvPad = static_cast<int32_t>(RoundUp(s.Dv, kFlashHeadPad));
  const FlashLengths longest = FlashLongestOf(problem);
  const FlashCandidate best = CandidateFor(problem, platform, longest, t.dPad, t.dvPad);
  t.depth = DepthOf(platform);
  t.qRows = best.qRows;
  t.kvCols = best.kvCols;
  t.stripRows = best.stripRows;
  t.stripFloats = static_cast<int32_t>(StripFloats(best, t.dvPad));
  t.colsUnit = ColsUnit(platform);
  t.scoreRow = static_cast<int32_t>(t.kvCols + (platform.isCpu() ? kFlashPadFloats : 0));
  t.outElements = static_cast<int32_t>(OutElements(problem, best, t.dvPad, t.depth));
  const int64_t l1Rows = L1Rows(problem, platform, best, t.dPad, t.dvPad);
  if (l1Rows < kFlashHeadPad) return FlashTooWide("FlashAttentionScore", s, platform);
  const int64_t allRows = std::max<int64_t>(RoundUp(longest.keys, t.kvCols), t.kvCols);
  t.superRows = static_cast<int32_t>(std::min(RoundDown(l1Rows, t.kvCols), allRows));
  if (t.superRows == 0) t.superRows = PieceRows(t.kvCols, CeilDiv(t.kvCols, RoundDown(l1Rows, kFlashFractalRows)));
  // The last piece of probabilities is multiplied while the first of the scores three tasks later is written, which may
  // be in the same place only if they do not overlap.
  const int64_t pieces = CeilDiv(t.kvCols, t.superRows);
  t.scorePlaces = t.depth == 0 ? 1 : (pieces - 1) * problem.elementBytes >= 4 ? 3 : 4;
  // The CPU arranges a super-block once for all that walk it. The card streams keys and values through L1, and a block
  // stays where it is until it has seen all.
  t.walkRows = platform.isCpu() ? t.superRows : static_cast<int32_t>(allRows);
  const bool oneWalk = longest.keys <= t.walkRows;

  // Chunks: as many as the cores need, bounded state.
  const int64_t tasks = TasksOf(s, platform);
  const int64_t wanted = CeilDiv(tasks * (oneWalk ? 16 : 2), s.B * s.Nkv);
  int64_t chunkRows = RoundUp(CeilDiv(longest.rows, wanted), t.qRows);
  if (!oneWalk) chunkRows = std::min(chunkRows, RoundDown(kStateRows / G, t.qRows));
  t.chunkRows = static_cast<int32_t>(std::max<int64_t>(chunkRows, t.qRows));

  const UnitSplit split(problem, t);
  const int64_t work = split.total() * t.qRows * G * (s.D + s.Dv);
  const int64_t cores = std::min({tasks, split.units(), std::max<int64_t>(1, work / kFlashMinCoreWork)});
  split.Fill(static_cast<int32_t>(cores), tiling->unitBegin);
  tiling->head.cores = static_cast<int32_t>(cores);

  const int64_t blocks = CeilDiv(t.chunkRows, t.qRows) * G;
  const int64_t stateBytes =
      oneWalk ? 0 : blocks * (int64_t{t.qRows} * t.dvPad + 2 * FlashStatFloats(t.qRows, t.depth)) * 4;
  const int64_t queryRows = RoundUp(t.qRows, kFlashFractalRows);
  tiling->denseBytes =
      RowsAreFarApart(s) ? (t.superRows * (t.dPad + t.dvPad) + queryRows * t.dPad) * problem.elementBytes : 0;
  const int64_t tasksBytes =
      t.qRows * ((t.scorePlaces + t.depth) * int64_t{t.scoreRow} + FlashPlaces(t.depth) * t.dvPad) * 4;
  tiling->coreWorkspaceBytes = RoundUp(tasksBytes + tiling->denseBytes + stateBytes, 512);
  tiling->head.workspaceBytes = cores * tiling->coreWorkspaceBytes;
  return Status::Ok();
}

Status FlashAttentionScoreInferShape(const OpArgs& args, std::vector<Shape>* outputs) {
  const std::string& layout = args.Str("input_layout");
  const Shape& query = args.Input("query").shape;
  const Shape& value = args.Input("value").shape;
  const Shape& key = args.Input("key").shape;
  if (HasUnknownRank(query) || HasUnknownRank(key) || HasUnknownRank(value)) {
    *outputs = {{-2}, {-2}, {-2}};
    return Status::Ok();
  }
  const int64_t N = args.Int("head_num");
  Shape out = query;
  int64_t B = -1, S = -1;
  if (layout == "BSH" || layout == "SBH") {
    B = query[layout == "BSH" ? 0 : 1];
    S = query[layout == "BSH" ? 1 : 0];
    const bool known = query[2] > 0 && key[2] > 0 && value[2] >= 0;
    // N heads of the value's width; key and value have key's width / D heads.
    out[2] = known ? N * (value[2] / (key[2] / (query[2] / N))) : -1;
  } else {
    out.back() = value.back();
    if (layout != "TND") {
      B = query[0];
      S = query[layout == "BNSD" ? 2 : 1];
    }
  }
  const Shape statistics = layout == "TND" ? Shape{query[0], N, kFlashStatCopies} : Shape{B, N, S, kFlashStatCopies};
  *outputs = {out, statistics, statistics};
  return Status::Ok();
}

}  // namespace mst
