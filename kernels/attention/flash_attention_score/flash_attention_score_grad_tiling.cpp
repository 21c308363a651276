// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "attention/flash_attention_score/flash_attention_score_band.h"
#include "attention/flash_attention_score/flash_attention_score_plan.h"
#include "attention/flash_attention_score/flash_attention_score_tiling.h"
#include "common/tiling_math.h"

namespace mst {

Status FlashAttentionScoreInferShape(const OpArgs& args, std::vector<Shape>* outputs);

namespace {

constexpr int64_t kMaxSuperRows = 2048;       // more no longer saves packing, but costs memory
constexpr int64_t kQuerySumFloats = 1 << 18;  // of a chunk
constexpr int64_t kThreadBytes = 4 << 20;     // workspace of a thread's cores, unless one needs more
constexpr int64_t kQueryProducts = 3;         // matrix products behind dq, and behind dk and dv
constexpr int64_t kKeyValueProducts = 4;
constexpr int64_t kPseProducts = 2;

// Best first; the last fits everywhere. 16-bit products are faster and want more rows under each sum of dk and dv.
constexpr FlashCandidate kCandidates[] = {{128, 256, 8}, {96, 256, 8}, {64, 256, 8}, {64, 128, 16},
                                          {32, 128, 16}, {32, 64, 16}, {16, 64, 16}, {16, 32, 16}};

bool RowsAreFarApart(const FlashAttentionScoreShape& s) {
  return std::max({s.qRow, s.kRow, s.vRow, s.outRow}) > kFlashMaxPitch;
}

int64_t StripFloats(const FlashCandidate& c, const FlashAttentionScoreTiles& t) {
  return std::max<int64_t>(int64_t{c.stripRows} * c.kvCols, std::max(t.dPad, t.dvPad));
}

// Bytes of the unified buffer, as the buffers of the gradient kernel add up.
int64_t UbBytes(const FlashAttentionScoreProblem& p, const FlashCandidate& c, const FlashAttentionScoreTiles& t) {
  const FlashAttentionScoreShape& s = p.shape;
  const int64_t floats = StripFloats(c, t) * 4;
  const int64_t strips = 2 * floats;  // scores, dprobs
  const int64_t out = 2 * StripFloats(c, t) * p.elementBytes;
  const int64_t cap = s.softcap > 0.0f ? floats : 0;
  const int64_t factor = s.dropKind != 0 ? floats : 0;
  const int64_t statistics = 4 * (c.qRows + kFlashSpareRows) * kFlashStatCopies * 4;
  const int64_t rows = std::max(t.dPad, t.dvPad) * (p.elementBytes + kFlashRowBuffers * 4);
  const int64_t dense = RowsAreFarApart(s) ? 5 * kFlashDenseBytes : 0;
  return strips + out + cap + factor + FlashStripBytes(p, c) + statistics + rows + dense;
}

// Keys and values that L1 has room for beside a query block of query and dy. The CPU keeps key twice, since its panels
// serve one side of a product only.
int64_t L1Rows(const FlashAttentionScoreProblem& p, const Platform& platform, const FlashCandidate& c,
               const FlashAttentionScoreTiles& t) {
  const int64_t width = std::max(p.shape.D, p.shape.Dv);
  const int64_t left = FlashCubeLeftBytes(c.qRows, width, kFlashGradCubeRows, p.elementBytes) +
                       FlashCubeLeftBytes(c.kvCols, c.qRows, kFlashGradCubeRows, p.elementBytes) +
                       FlashCubeLeftBytes(c.qRows, c.kvCols, kFlashGradCubeRows, p.elementBytes);
  const int64_t bytes = platform.isCpu() ? platform.l1Bytes : FlashL1Bytes(platform, left);
  const int64_t elements = bytes / p.elementBytes - int64_t{c.qRows} * (t.dPad + t.dvPad);
  const int64_t rows = elements / ((platform.isCpu() ? 2 : 1) * t.dPad + t.dvPad);
  return std::min(rows, RowsAreFarApart(p.shape) ? kFlashMaxDenseRows : kMaxSuperRows);
}

// The costs of all units in the order in which the kernel counts them, in pairs times products.
class UnitCosts {
 public:
  UnitCosts(const FlashAttentionScoreProblem& problem, const FlashAttentionScoreGradTilingData& tiling)
      : problem_(problem), tiling_(tiling) {
    const FlashAttentionScoreShape& s = problem.shape;
    for (int64_t b = 0; b < s.B; ++b) AppendPairs(b);
    for (int64_t i = 0; i < tiling.pseUnits; ++i) {
      costs_.push_back(kPseProducts * s.B * s.N * s.Sq * s.Skv / tiling.pseUnits);
    }
    costs_.insert(costs_.end(), tiling.sinkUnits, s.B * s.Sq);
    for (const int64_t cost : costs_) total_ += cost;
  }

  int64_t units() const { return static_cast<int64_t>(costs_.size()); }
  int64_t total() const { return total_; }

  void Fill(int32_t cores, int64_t* unitBegin) const {
    FlashUnitRanges ranges(cores, total_, unitBegin);
    for (const int64_t cost : costs_) ranges.Add(cost);
    ranges.End();
  }

 private:
  int64_t PairsOf(const FlashBand& band, int64_t rowBegin, int64_t rowEnd, int64_t keyBegin, int64_t keyEnd) const {
    const FlashAttentionScoreTiles& t = tiling_.tiles;
    int64_t pairs = 0;
    for (int64_t row = rowBegin; row < rowEnd; row += t.qRows) {
      const int64_t end = std::min<int64_t>(row + t.qRows, rowEnd);
      const int64_t first = std::max(keyBegin, RoundDown(FlashKeyBegin(band, row), t.kvCols));
      const int64_t keys = std::min(keyEnd, FlashKeyEnd(band, end)) - first;
      pairs += (end - row) * (t.kvCols / 4 + std::max<int64_t>(0, keys));  // each block has some fixed cost
    }
    return pairs * (problem_.shape.N / problem_.shape.Nkv);
  }

  void AppendPairs(int64_t b) {
    const FlashLengths lengths = FlashLengthsOf(problem_, b);
    const int64_t prefix = problem_.prefix == nullptr ? 0 : problem_.prefix[b];
    const FlashBand band = FlashBandOf(problem_.shape, b, lengths.rows, lengths.keys, prefix);
    std::vector<int64_t> head;
    if (tiling_.split == 0) {
      head.push_back((kQueryProducts + 2) * PairsOf(band, 0, lengths.rows, 0, lengths.keys));
    } else {
      const int64_t chunk = tiling_.tiles.chunkRows;
      for (int64_t row = 0; row < lengths.rows; row += chunk) {
        head.push_back(kQueryProducts * PairsOf(band, row, std::min(row + chunk, lengths.rows), 0, lengths.keys));
      }
      for (int64_t key = 0; key < lengths.keys; key += tiling_.rangeKeys) {
        head.push_back(kKeyValueProducts *
                       PairsOf(band, 0, lengths.rows, key, std::min(key + tiling_.rangeKeys, lengths.keys)));
      }
    }
    for (int64_t n = 0; n < problem_.shape.Nkv; ++n) costs_.insert(costs_.end(), head.begin(), head.end());
  }

  const FlashAttentionScoreProblem& problem_;
  const FlashAttentionScoreGradTilingData& tiling_;
  std::vector<int64_t> costs_;
  int64_t total_ = 0;
};

// real_shift: whether each pair has its own element, and how many units sum the others.
void SetPse(const FlashAttentionScoreShape& s, FlashAttentionScoreGradTilingData* tiling) {
  if (s.pseType != 0 && s.pseType != 1) return;
  const bool ownRow = s.pseRow != 0 || s.Sq == 1;
  const bool ownHead = s.pseHead != 0 || s.N == 1;
  const bool ownBatch = s.pseBatch != 0 || s.B == 1;
  tiling->pseDirect = s.packed != 0 || (ownRow && ownHead && ownBatch);
  if (tiling->pseDirect != 0) return;
  const int64_t blocks = s.pseRow == 0 ? 1 : CeilDiv(s.Sq, tiling->tiles.qRows);
  tiling->pseUnits = blocks * (s.pseHead == 0 ? 1 : s.N) * (s.pseBatch == 0 ? 1 : s.B);
}

// Picks the tiles and, with fewer kv heads than cores, cuts them.
Status SetTiles(const FlashAttentionScoreProblem& problem, const Platform& platform, const FlashLengths& longest,
                FlashAttentionScoreGradTilingData* tiling) {
  const FlashAttentionScoreShape& s = problem.shape;
  FlashAttentionScoreTiles& t = tiling->tiles;
  t.dPad = static_cast<int32_t>(RoundUp(s.D, kFlashHeadPad));
  t.dvPad = static_cast<int32_t>(RoundUp(s.Dv, kFlashHeadPad));
  const FlashCandidate* best = &kCandidates[problem.elementBytes == 4 ? 1 : 0];
  while (best + 1 != std::end(kCandidates) &&
         (UbBytes(problem, *best, t) > platform.ubBytes || best->kvCols > L1Rows(problem, platform, *best, t))) {
    ++best;
  }
  const int64_t l1Rows = L1Rows(problem, platform, *best, t);
  if (l1Rows < best->kvCols) return FlashTooWide("FlashAttentionScoreGrad", s, platform);
  t.qRows = best->qRows;
  t.kvCols = best->kvCols;
  t.stripRows = best->stripRows;
  t.stripFloats = static_cast<int32_t>(StripFloats(*best, t));
  t.scoreRow = static_cast<int32_t>(t.kvCols + kFlashPadFloats);
  t.probRow = static_cast<int32_t>(t.kvCols + kFlashPadFloats * 4 / problem.elementBytes);
  t.superRows = static_cast<int32_t>(
      std::min(RoundDown(l1Rows, t.kvCols), std::max<int64_t>(RoundUp(longest.keys, t.kvCols), t.kvCols)));
  const int64_t sumRows = RoundDown(kQuerySumFloats / t.dPad, t.qRows);
  t.chunkRows = static_cast<int32_t>(std::max<int64_t>(t.qRows, std::min(sumRows, RoundUp(longest.rows, t.qRows))));
  tiling->keyRows = longest.keys;
  const int64_t pieces = 2 * CeilDiv(platform.vectorCores, std::max<int64_t>(1, s.B * s.Nkv));
  tiling->split = s.B * s.Nkv < platform.vectorCores && longest.rows * longest.keys > t.qRows * t.kvCols;
  if (tiling->split == 0) return Status::Ok();
  const int64_t chunk = RoundUp(CeilDiv(longest.rows, pieces), t.qRows);
  t.chunkRows = static_cast<int32_t>(std::max<int64_t>(t.qRows, std::min<int64_t>(t.chunkRows, chunk)));
  tiling->rangeKeys = std::max<int64_t>(t.kvCols, RoundUp(CeilDiv(longest.keys, pieces), t.kvCols));
  tiling->keyRows = std::min(tiling->keyRows, tiling->rangeKeys);
  return Status::Ok();
}

Status CheckShape(const OpArgs& args, const char* name, const Shape& want) {
  const Shape& got = args.Input(name).shape;
  if (got == want) return Status::Ok();
  return ValueErrorFor(args, "shape of '%s' must be %s, but got %s.", name, ToString(want).c_str(),
                       ToString(got).c_str());
}

}  // namespace

Status FlashAttentionScoreGradProblemOf(const OpArgs& args, FlashAttentionScoreGradProblem* problem) {
  MST_RETURN_IF_ERROR(FlashAttentionProblemOf(args, &problem->forward));
  if (!args.allDimsKnown()) return Status::Ok();
  std::vector<Shape> forward;
  MST_RETURN_IF_ERROR(FlashAttentionScoreInferShape(args, &forward));
  MST_RETURN_IF_ERROR(CheckShape(args, "attention_out", forward[0]));
  MST_RETURN_IF_ERROR(CheckShape(args, "dy", forward[0]));
  MST_RETURN_IF_ERROR(CheckShape(args, "softmax_max", forward[1]));
  MST_RETURN_IF_ERROR(CheckShape(args, "softmax_sum", forward[2]));
  return args.Has("dlse") ? CheckShape(args, "dlse", forward[1]) : Status::Ok();
}

Status FlashAttentionScoreGradTiling(const FlashAttentionScoreGradProblem& gradProblem, const Platform& platform,
                                     FlashAttentionScoreGradTilingData* tiling) {
  const FlashAttentionScoreProblem& problem = gradProblem.forward;
  const FlashAttentionScoreShape& s = problem.shape;
  FlashAttentionScoreTiles& t = tiling->tiles;
  tiling->shape = s;
  MST_RETURN_IF_ERROR(FlashCheckReadable("FlashAttentionScoreGrad", problem));
  tiling->keysOnce = !platform.isCpu();
  const FlashLengths longest = FlashLongestOf(problem);
  MST_RETURN_IF_ERROR(SetTiles(problem, platform, longest, tiling));
  SetPse(s, tiling);
  tiling->sinkUnits = s.hasSink != 0 ? s.N : 0;
  const UnitCosts costs(problem, *tiling);
  tiling->pairUnits = costs.units() - tiling->pseUnits - tiling->sinkUnits;

  tiling->denseBytes =
      RowsAreFarApart(s)
          ? (t.superRows * (2 * t.dPad + t.dvPad) + int64_t{t.qRows} * (t.dPad + t.dvPad)) * problem.elementBytes
          : 0;
  tiling->tileBytes =
      tiling->denseBytes + t.qRows * (2 * int64_t{t.scoreRow} * 4 + 2 * t.probRow * problem.elementBytes);
  const int64_t keySums = problem.elementBytes == 4 ? 0 : tiling->keyRows * (t.dPad + t.dvPad);
  const int64_t sums = int64_t{t.chunkRows} * t.dPad + keySums;
  const int64_t pseSums = tiling->pseUnits != 0 ? int64_t{t.qRows} * t.superRows : 0;
  tiling->coreWorkspaceBytes = RoundUp(tiling->tileBytes + std::max(sums, pseSums) * 4, 512);

  const int64_t perThread = std::clamp<int64_t>(kThreadBytes / tiling->coreWorkspaceBytes, 1, platform.tasksPerCore);
  const int64_t tasks = std::min<int64_t>(int64_t{platform.vectorCores} * perThread, kFlashMaxCores);
  const int64_t work = costs.total() * std::max(s.D, s.Dv);
  const int64_t cores = std::min({tasks, costs.units(), std::max<int64_t>(1, work / kFlashMinCoreWork)});
  costs.Fill(static_cast<int32_t>(cores), tiling->unitBegin);
  tiling->head.cores = static_cast<int32_t>(cores);
  tiling->head.workspaceBytes = cores * tiling->coreWorkspaceBytes;
  return Status::Ok();
}

Status FlashAttentionScoreGradInferShape(const OpArgs& args, std::vector<Shape>* outputs) {
  const Shape one = {1};
  *outputs = {args.Input("query").shape, args.Input("key").shape, args.Input("value").shape,
              args.Has("real_shift") ? args.Input("real_shift").shape : one,
              args.Has("sink") ? args.Input("sink").shape : one};
  return Status::Ok();
}

}  // namespace mst
