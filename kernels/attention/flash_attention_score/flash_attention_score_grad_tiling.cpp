// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <numeric>
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
constexpr int64_t kThreadBytes = 7 << 19;     // workspace of a thread's cores, unless one needs more
constexpr int64_t kQueryProducts = 3;         // matrix products behind dq, and behind dk and dv
constexpr int64_t kKeyValueProducts = 4;
constexpr int64_t kAllProducts = 5;
constexpr int64_t kPseProducts = 2;

// Best first, for the CPU; the last fits everywhere. 16-bit products are faster and want more rows under each sum of dk
// and dv.
constexpr FlashCandidate kCpuCandidates[] = {{128, 256, 8}, {96, 256, 8}, {64, 256, 8}, {64, 128, 16},
                                             {32, 128, 16}, {32, 64, 16}, {16, 64, 16}, {16, 32, 16}};
// Best first by the cost model, for the card.
constexpr FlashCandidate kCardCandidates[] = {{128, 128, 32}, {128, 128, 16}, {64, 128, 16}, {32, 128, 16},
                                              {32, 64, 16},   {16, 64, 16},   {16, 32, 16}};
constexpr int64_t kRangesPerCore = 16;  // of keys, with which the cores have about the same work

bool RowsAreFarApart(const FlashAttentionScoreShape& s) {
  return std::max({s.qRow, s.kRow, s.vRow, s.outRow}) > kFlashMaxPitch;
}

int64_t StripFloats(const FlashCandidate& c, const FlashAttentionScoreTiles& t) {
  return std::max<int64_t>(int64_t{c.stripRows} * c.kvCols, std::max(t.dPad, 2 * t.dvPad));  // a row of dy and of y
}

// Bytes of the unified buffer, as the buffers of the gradient kernel add up.
int64_t UbBytes(const FlashAttentionScoreProblem& p, const FlashCandidate& c, const FlashAttentionScoreTiles& t) {
  const FlashAttentionScoreShape& s = p.shape;
  const int64_t floats = StripFloats(c, t) * 4;
  const int64_t strips = (t.depth + 1) * 2 * floats;  // scores, dprobs
  const int64_t out = 2 * StripFloats(c, t) * p.elementBytes;
  const int64_t cap = s.softcap > 0.0f ? floats : 0;
  const int64_t factor = s.dropKind != 0 ? floats : 0;
  const int64_t statistics = ((t.depth + 1) * 3 * c.qRows + c.qRows + kFlashSpareRows) * kFlashStatCopies * 4;
  const int64_t rows = std::max(t.dPad, t.dvPad) * (p.elementBytes + kFlashRowBuffers * 4);
  const int64_t dense = RowsAreFarApart(s) ? 5 * kFlashDenseBytes : 0;
  return strips + out + cap + factor + FlashStripBytes(p, c, kFlashWorkBytes) + statistics + rows + dense;
}

// Keys, `copies` times, and values that L1 has room for beside a query block of query and dy.
int64_t L1Rows(const FlashAttentionScoreProblem& p, const Platform& platform, const FlashCandidate& c,
               const FlashAttentionScoreTiles& t, int64_t copies) {
  const auto left = [&](int64_t M, int64_t K) { return FlashCubeLeftBytes(M, K, kFlashCubeRows, p.elementBytes); };
  const int64_t lefts =
      left(c.qRows, p.shape.D) + left(c.qRows, p.shape.Dv) + 2 * left(c.kvCols, c.qRows) + left(c.qRows, c.kvCols);
  const int64_t bytes = platform.isCpu() ? platform.l1Bytes : FlashL1Bytes(platform, lefts);
  const int64_t elements = bytes / p.elementBytes - int64_t{c.qRows} * (t.dPad + t.dvPad);
  const int64_t rows = elements / (copies * t.dPad + t.dvPad);
  return std::min(rows, RowsAreFarApart(p.shape) ? kFlashMaxDenseRows : kMaxSuperRows);
}

// Two copies of the keys if there is room for a key block twice.
int32_t KeyCopies(const FlashAttentionScoreProblem& p, const Platform& platform, const FlashCandidate& c,
                  const FlashAttentionScoreTiles& t) {
  return platform.isCpu() || L1Rows(p, platform, c, t, 2) >= c.kvCols ? 2 : 1;
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

  void Fill(int32_t cores, bool cutsHeads, int64_t* unitBegin) const {
    FlashUnitRanges ranges(cores, total_, unitBegin);
    if (cutsHeads) {
      for (const int64_t cost : costs_) ranges.Add(cost);
      ranges.End();
      return;
    }
    std::vector<int64_t> begin = headBegin_;  // then those that belong to no head
    for (int64_t unit = tiling_.pairUnits; unit <= units(); ++unit) begin.push_back(unit);
    for (size_t i = 0; i + 1 < begin.size(); ++i) {
      ranges.Add(std::accumulate(costs_.begin() + begin[i], costs_.begin() + begin[i + 1], int64_t{0}));
    }
    ranges.End();
    for (int32_t core = 0; core <= cores; ++core) unitBegin[core] = begin[static_cast<size_t>(unitBegin[core])];
  }

  // Ranges: each core has a slot for a kv head that another core has begun, and one for those that it begins.
  void FillSlots(int32_t cores, const int64_t* unitBegin, int64_t* slotBegin) const {
    slotBegin[0] = 0;
    for (int32_t core = 0; core < cores; ++core) {
      const int64_t begin = unitBegin[core], end = std::min(unitBegin[core + 1], tiling_.pairUnits);
      const auto head = std::lower_bound(headBegin_.begin(), headBegin_.end(), begin);  // the first that it may begin
      const bool begins = head != headBegin_.end() && *head < end;
      const bool goesOn = begin < end && (head == headBegin_.end() || *head != begin);
      slotBegin[core + 1] = slotBegin[core] + begins + goesOn;
    }
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
    if (tiling_.cut == kFlashGradSplit) {
      const int64_t chunk = tiling_.tiles.chunkRows;
      for (int64_t row = 0; row < lengths.rows; row += chunk) {
        head.push_back(kQueryProducts * PairsOf(band, row, std::min(row + chunk, lengths.rows), 0, lengths.keys));
      }
    }
    const int64_t products = tiling_.cut == kFlashGradSplit ? kKeyValueProducts : kAllProducts;
    const int64_t range = tiling_.cut == kFlashGradWhole ? std::max<int64_t>(1, lengths.keys) : tiling_.rangeKeys;
    int64_t key = 0;
    do {  // without keys there are rows of dq all the same
      if (tiling_.cut == kFlashGradSplit && lengths.keys == 0) break;
      head.push_back(products * PairsOf(band, 0, lengths.rows, key, std::min(key + range, lengths.keys)));
      key += range;
    } while (key < lengths.keys);
    for (int64_t n = 0; n < problem_.shape.Nkv; ++n) {
      headBegin_.push_back(units());
      costs_.insert(costs_.end(), head.begin(), head.end());
    }
  }

  const FlashAttentionScoreProblem& problem_;
  const FlashAttentionScoreGradTilingData& tiling_;
  std::vector<int64_t> costs_;
  std::vector<int64_t> headBegin_;  // the first unit of each kv head
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

// Picks the tiles, and cuts kv heads: into ranges if that is wanted, else if there are fewer of them than cores.
Status SetTiles(const FlashAttentionScoreProblem& problem, const Platform& platform, const FlashLengths& longest,
                bool wantsRanges, FlashAttentionScoreGradTilingData* tiling) {
  const FlashAttentionScoreShape& s = problem.shape;
  FlashAttentionScoreTiles& t = tiling->tiles;
  t.dPad = static_cast<int32_t>(RoundUp(s.D, kFlashHeadPad));
  t.dvPad = static_cast<int32_t>(RoundUp(s.Dv, kFlashHeadPad));
  t.depth = platform.isCpu() ? 0 : 1;
  const FlashCandidate* best = platform.isCpu() ? &kCpuCandidates[problem.elementBytes == 4 ? 1 : 0] : kCardCandidates;
  const FlashCandidate* last = platform.isCpu() ? std::end(kCpuCandidates) - 1 : std::end(kCardCandidates) - 1;
  while (best != last && (UbBytes(problem, *best, t) > platform.ubBytes ||
                          best->kvCols > L1Rows(problem, platform, *best, t, KeyCopies(problem, platform, *best, t)))) {
    ++best;
  }
  tiling->keyCopies = KeyCopies(problem, platform, *best, t);
  const int64_t l1Rows = L1Rows(problem, platform, *best, t, tiling->keyCopies);
  if (l1Rows < best->kvCols) return FlashTooWide("FlashAttentionScoreGrad", s, platform);
  t.qRows = best->qRows;
  t.kvCols = best->kvCols;
  t.stripRows = best->stripRows;
  t.stripFloats = static_cast<int32_t>(StripFloats(*best, t));
  t.scoreRow = static_cast<int32_t>(t.kvCols + kFlashPadFloats);
  t.superRows = static_cast<int32_t>(
      std::min(RoundDown(l1Rows, t.kvCols), std::max<int64_t>(RoundUp(longest.keys, t.kvCols), t.kvCols)));
  const int64_t sumRows = RoundDown(kQuerySumFloats / t.dPad, t.qRows);
  t.chunkRows = static_cast<int32_t>(std::max<int64_t>(t.qRows, std::min(sumRows, RoundUp(longest.rows, t.qRows))));
  tiling->keyRows = longest.keys;
  const int64_t heads = std::max<int64_t>(1, s.B * s.Nkv);
  if (wantsRanges) {
    tiling->cut = kFlashGradRanges;
    t.chunkRows = static_cast<int32_t>(std::max<int64_t>(t.qRows, RoundUp(longest.rows, t.qRows)));
    const int64_t even = RoundUp(CeilDiv(heads * longest.keys, platform.vectorCores * kRangesPerCore), t.kvCols);
    t.superRows = static_cast<int32_t>(std::clamp<int64_t>(even, t.kvCols, t.superRows));
    tiling->rangeKeys = tiling->keyRows = t.superRows;
    return Status::Ok();
  }
  const int64_t pieces = 2 * CeilDiv(platform.vectorCores, heads);
  const bool isSplit = s.B * s.Nkv < platform.vectorCores && longest.rows * longest.keys > t.qRows * t.kvCols;
  tiling->cut = isSplit ? kFlashGradSplit : kFlashGradWhole;
  if (!isSplit) return Status::Ok();
  const int64_t chunk = RoundUp(CeilDiv(longest.rows, pieces), t.qRows);
  t.chunkRows = static_cast<int32_t>(std::max<int64_t>(t.qRows, std::min<int64_t>(t.chunkRows, chunk)));
  tiling->rangeKeys = std::max<int64_t>(t.kvCols, RoundUp(CeilDiv(longest.keys, pieces), t.kvCols));
  tiling->keyRows = std::min(tiling->keyRows, tiling->rangeKeys);
  return Status::Ok();
}

int64_t SlotsBytes(const FlashAttentionScoreGradTilingData& tiling) {
  const int64_t rows = tiling.shape.N / tiling.shape.Nkv * tiling.tiles.chunkRows;
  return tiling.slotBegin[tiling.head.cores] * rows * tiling.tiles.dPad * 4;
}

// Ranges of keys that the cores have about as many of; those of a kv head all for one core; or neither.
enum class Way { kRanges, kRangesOfWholeHeads, kHeads };

Status Plan(const FlashAttentionScoreProblem& problem, const Platform& platform, Way way,
            FlashAttentionScoreGradTilingData* tiling) {
  const FlashAttentionScoreShape& s = problem.shape;
  FlashAttentionScoreTiles& t = tiling->tiles;
  *tiling = {};
  tiling->shape = s;
  MST_RETURN_IF_ERROR(SetTiles(problem, platform, FlashLongestOf(problem), way != Way::kHeads, tiling));
  const bool isRanges = tiling->cut == kFlashGradRanges;
  SetPse(s, tiling);
  tiling->sinkUnits = s.hasSink != 0 ? s.N : 0;
  const UnitCosts costs(problem, *tiling);
  tiling->pairUnits = costs.units() - tiling->pseUnits - tiling->sinkUnits;

  const int64_t dense = t.superRows * (tiling->keyCopies * t.dPad + t.dvPad) + int64_t{t.qRows} * (t.dPad + t.dvPad);
  tiling->denseBytes = RowsAreFarApart(s) ? dense * problem.elementBytes : 0;
  tiling->deltaRows = (isRanges ? s.N / s.Nkv : 1) * t.chunkRows;
  tiling->tileBytes = tiling->denseBytes + FlashGradPlaces(t.depth) * t.qRows * 2 * int64_t{t.scoreRow} * 4 +
                      tiling->deltaRows * kFlashStatCopies * 4;
  const int64_t keySums =
      problem.elementBytes == 4 ? 0 : FlashGradKeyPlaces(tiling->cut) * tiling->keyRows * (t.dPad + t.dvPad);
  const int64_t sums = (isRanges ? 0 : int64_t{t.chunkRows} * t.dPad) + keySums;
  const int64_t pseSums = tiling->pseUnits != 0 ? int64_t{t.qRows} * t.superRows : 0;
  tiling->coreWorkspaceBytes = RoundUp(tiling->tileBytes + std::max(sums, pseSums) * 4, 512);

  const int64_t perThread = std::clamp<int64_t>(kThreadBytes / tiling->coreWorkspaceBytes, 1, platform.tasksPerCore);
  const int64_t tasks = std::min<int64_t>(int64_t{platform.vectorCores} * perThread, kFlashMaxCores);
  const int64_t work = costs.total() * std::max(s.D, s.Dv);
  const int64_t cores = std::min({tasks, costs.units(), std::max<int64_t>(1, work / kFlashMinCoreWork)});
  costs.Fill(static_cast<int32_t>(cores), way != Way::kRangesOfWholeHeads, tiling->unitBegin);
  if (isRanges) costs.FillSlots(static_cast<int32_t>(cores), tiling->unitBegin, tiling->slotBegin);
  tiling->head.cores = static_cast<int32_t>(cores);
  tiling->head.workspaceBytes = cores * tiling->coreWorkspaceBytes + SlotsBytes(*tiling);
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
  MST_RETURN_IF_ERROR(FlashCheckReadable("FlashAttentionScoreGrad", gradProblem.forward));
  const FlashAttentionScoreProblem& problem = gradProblem.forward;
  if (!platform.isCpu()) {
    // L2 has to hold the workspace.
    const bool hasManyHeads = problem.shape.B * problem.shape.Nkv >= platform.vectorCores;
    MST_RETURN_IF_ERROR(Plan(problem, platform, Way::kRanges, tiling));
    if (tiling->head.workspaceBytes <= platform.l2Bytes) return Status::Ok();
    if (hasManyHeads) MST_RETURN_IF_ERROR(Plan(problem, platform, Way::kRangesOfWholeHeads, tiling));
    if (hasManyHeads && tiling->head.workspaceBytes <= platform.l2Bytes) return Status::Ok();
  }
  return Plan(problem, platform, Way::kHeads, tiling);
}

Status FlashAttentionScoreGradInferShape(const OpArgs& args, std::vector<Shape>* outputs) {
  const Shape one = {1};
  *outputs = {args.Input("query").shape, args.Input("key").shape, args.Input("value").shape,
              args.Has("real_shift") ? args.Input("real_shift").shape : one,
              args.Has("sink") ? args.Input("sink").shape : one};
  return Status::Ok();
}

}  // namespace mst
