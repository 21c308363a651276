// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "moe/moe_gating_top_k_softmax/moe_gating_top_k_softmax_tiling.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "common/op_args.h"
#include "common/tiling_math.h"

namespace mst {
namespace {

constexpr int64_t kRepeatsMax = 255;  // of one instruction, and blocks that it steps over
constexpr int64_t kTileElementsCard = 4096;
constexpr int64_t kGradTileElementsCard = 11264;  // what is small per tile waits often
constexpr int64_t kTileElementsCpu = 2048;        // all tiles together stay in L1
constexpr int64_t kVectorBytes = 256;             // of one repeat of a vector instruction
constexpr int64_t kUnitRow = 8;                   // rows are handled in groups of 8 by some instructions

Status CheckChoice(const OpArgs& args, int64_t T, int64_t E, int64_t k) {
  if (k > E) {
    return ValueErrorFor(args, "'k' must be at most dim E of 'x' (%ld), but got %ld.", static_cast<long>(E),
                         static_cast<long>(k));
  }
  if (T * k > std::numeric_limits<int32_t>::max()) {
    return ValueErrorFor(args, "tokens times 'k' must fit in int32, but got %ld.", static_cast<long>(T * k));
  }
  return Status::Ok();
}

// Rows of a tile, of `perRow` bytes each and `perGroupedRow` where rows are rounded up to 8, beside `fixed` bytes; 0 if
// not even one fits. One instruction covers a tile, `lanes` elements at a time.
int64_t FitRows(const Platform& platform, int64_t pitch, int64_t lanes, int64_t elements, int64_t perRow,
                int64_t perGroupedRow, int64_t fixed) {
  const int64_t wanted = std::max<int64_t>(1, elements / pitch);
  const int64_t room = platform.ubBytes - fixed;
  int64_t rows = std::min({wanted, kRowsPerTileMax, kRepeatsMax * lanes / pitch});
  if (rows > kUnitRow) rows = RoundDown(rows, kUnitRow);
  while (rows > 0 && rows * perRow + RoundUp(rows, kUnitRow) * perGroupedRow > room) {
    rows -= rows > kUnitRow ? kUnitRow : 1;
  }
  return rows;
}

// Rows that whole repeats cover, and that are a power of two of them in a mask or fill whole masks.
int64_t MaskedPitch(int64_t E, int64_t lanes) {
  if (E > kMoeMaskBits / 2) return RoundUp(E, kMoeMaskBits);
  return E > lanes ? kMoeMaskBits / 2 : lanes;
}

// What eight choices of a row need to be put in their place by masks.
int64_t MaskBytes(int64_t pitch, int64_t lanes, int64_t xBytes) {
  // masks of the row and a part of one that rows share; words and bits as spread, or a value for each repeat
  const int64_t masks = CeilDiv(pitch, kMoeMaskBits);
  const int64_t blocks = masks + (pitch < kMoeMaskBits ? 1 : 0) + std::max<int64_t>(2, pitch / lanes);
  // words and bits as floats and halves, bits of comparisons, values as stored
  return kMoeChoicesAtOnce * (blocks * kBlockBytes + 2 * 4 + 2 * 2 + 2 * (masks + 1) + xBytes);
}

Status TooManyExperts(const char* name, int64_t E) {
  return Status::ValueError(std::string("For '") + name + "', dim E of 'x' must fit in local memory, but got " +
                            std::to_string(E) + ".");
}

}  // namespace

Status MoeGatingTopKSoftmaxProblemOf(const OpArgs& args, MoeGatingTopKSoftmaxProblem* problem) {
  problem->T = args.Dim("...");
  problem->E = args.Dim("E");
  problem->k = args.Int("k");
  problem->xBytes = SizeOf(args.Input("x").dtype);
  problem->renorm = args.Int("renorm") == 1;
  problem->hasFinished = args.Has("finished");
  problem->hasSoftmax = args.Bool("output_softmax_result_flag");
  return CheckChoice(args, problem->T, problem->E, problem->k);
}

Status MoeGatingTopKSoftmaxInferShape(const OpArgs& args, std::vector<Shape>* outputs) {
  const Shape& x = args.Input("x").shape;
  Shape chosen = x;
  if (!HasUnknownRank(x)) chosen.back() = args.Int("k");
  *outputs = {chosen, chosen, chosen, args.Bool("output_softmax_result_flag") ? x : Shape{0}};
  return Status::Ok();
}

Status MoeGatingTopKSoftmaxTiling(const MoeGatingTopKSoftmaxProblem& problem, const Platform& platform,
                                  MoeGatingTopKSoftmaxTilingData* data) {
  *data = {};
  data->T = problem.T;
  data->E = problem.E;
  data->k = problem.k;
  data->renorm = problem.renorm;
  data->hasFinished = problem.hasFinished;
  data->hasSoftmax = problem.hasSoftmax;
  data->buffers = platform.isCpu() ? 1 : 2;
  data->expertPitch = RoundUp(problem.E, kMoeSortUnit);
  data->choicePitch = RoundUp(problem.k, kBlockBytes / problem.xBytes);

  const int64_t expert = data->expertPitch;
  const int64_t choice = data->choicePitch;
  const int64_t lists = expert / kMoeSortUnit;
  data->sortsAgain = problem.k <= kMoeShortChoice && lists > 1 && (lists & (lists - 1)) == 0;
  // x as stored, as floats, expert numbers, sorted records, softmax_result
  int64_t perExpert = problem.xBytes * data->buffers + 4 + 4 + 8 + (problem.hasSoftmax ? 4 * data->buffers : 0);
  // at most half of the records, apart, and their values and numbers
  if (data->sortsAgain) perExpert += (8 + 4 + 4) / 2;
  // records, logits and their exponentials, experts and row numbers (queues), the first tile's row numbers, y
  const int64_t perChoice = 8 + 4 + 4 + (4 + 4 + problem.xBytes) * data->buffers + 4;
  const int64_t perRow = expert * perExpert + choice * perChoice;
  // maximum, sum, and one of them spread over a block; finished
  const int64_t perGroupedRow = 4 + 4 + kBlockBytes + kBlockBytes;
  // two sets of records of merged lists, the records that the last merge writes beyond its row, partial sums, and what
  // groups of 32 records add
  const int64_t merging = data->sortsAgain ? 0 : 2 * 8 * expert + 4 * 8 * RoundUp(choice, kMoeSortUnit);
  const int64_t fixed = merging + expert + kMoeSortUnit * perChoice + 16 * kBlockBytes;
  const int64_t elements = platform.isCpu() ? kTileElementsCpu : kTileElementsCard;
  data->rowsPerTile = FitRows(platform, expert, kMoeSortUnit, elements, perRow, perGroupedRow, fixed);
  if (data->rowsPerTile == 0) return TooManyExperts("MoeGatingTopKSoftmax", problem.E);
  // Sorting counts as if more bytes moved.
  data->head.cores = CoresForBytes(platform, CeilDiv(problem.T, kUnitRow), 16 * problem.T * problem.E);
  return Status::Ok();
}

Status MoeGatingTopKSoftmaxGradProblemOf(const OpArgs& args, MoeGatingTopKSoftmaxGradProblem* problem) {
  problem->T = args.Dim("...");
  problem->E = args.Dim("E");
  problem->k = args.Int("k");
  problem->xBytes = SizeOf(args.Input("x").dtype);
  problem->renorm = args.Int("renorm") == 1;
  problem->hasSoftmax = args.Has("dsoftmax");
  return CheckChoice(args, problem->T, problem->E, problem->k);
}

Status MoeGatingTopKSoftmaxGradCheckValues(const OpArgs& args) {
  const int64_t E = args.Dim("E");
  for (const int64_t expert : args.Values("expert_idx")) {
    if (expert < 0 || expert > E) {
      return ValueErrorFor(args, "values of 'expert_idx' must be from 0 to dim E (%ld), but got %ld.",
                           static_cast<long>(E), static_cast<long>(expert));
    }
  }
  return Status::Ok();
}

Status MoeGatingTopKSoftmaxGradTiling(const MoeGatingTopKSoftmaxGradProblem& problem, const Platform& platform,
                                      MoeGatingTopKSoftmaxGradTilingData* data) {
  *data = {};
  data->T = problem.T;
  data->E = problem.E;
  data->k = problem.k;
  data->renorm = problem.renorm;
  data->hasSoftmax = problem.hasSoftmax;
  data->buffers = platform.isCpu() ? 1 : 2;
  data->byMask = !platform.isCpu();
  const int64_t unit = kBlockBytes / problem.xBytes;
  const int64_t lanes = kVectorBytes / problem.xBytes;
  data->expertPitch = data->byMask ? MaskedPitch(problem.E, lanes) : RoundUp(problem.E, unit);
  data->choicePitch = RoundUp(problem.k, kBlockBytes / 4);
  // Rows that touch need no whole blocks.
  data->dyPitch = problem.k == data->choicePitch ? problem.k : RoundUp(problem.k, unit);

  // x, dx and dsoftmax (queues), exponentials, g
  const int64_t perExpert =
      (2 * problem.xBytes + (problem.hasSoftmax ? 4 : 0)) * data->buffers + 4 + (problem.hasSoftmax ? 4 : 0);
  // experts (queue), dy, results and logits as floats, logits as stored, experts, offsets, beginnings of rows, whether
  // an expert is there; positions and what is added to them
  const int64_t perChoice = 4 * data->buffers + 3 * 4 + problem.xBytes + 3 * 4 + 1 + (data->byMask ? 2 * 4 : 0);
  int64_t perRow =
      data->expertPitch * perExpert + data->choicePitch * perChoice + data->dyPitch * problem.xBytes * data->buffers;
  if (data->byMask) perRow += MaskBytes(data->expertPitch, lanes, problem.xBytes);
  // maximum, sum and dot product, two of them spread over a block, and columns to be reduced
  const int64_t perGroupedRow = 3 * 4 + 2 * kBlockBytes + kVectorBytes;
  // partial results of a row, numbers of words, and what is rounded up: choices to an instruction's 64
  const int64_t fixed = std::max(data->expertPitch, data->choicePitch) / 8 + data->expertPitch / 8 +
                        (64 - kBlockBytes / 4) * perChoice + 32 * kBlockBytes;
  const int64_t elements = platform.isCpu() ? kTileElementsCpu : kGradTileElementsCard;
  data->rowsPerTile = FitRows(platform, data->expertPitch, lanes, elements, perRow, perGroupedRow, fixed);
  // An instruction steps over the masks of eight rows.
  const bool isTooLong = data->byMask && kUnitRow * data->expertPitch / kMoeMaskBits > kRepeatsMax;
  if (data->rowsPerTile == 0 || isTooLong) return TooManyExperts("MoeGatingTopKSoftmaxGrad", problem.E);
  data->head.cores = CoresForBytes(platform, CeilDiv(problem.T, kUnitRow), 8 * problem.T * problem.E);
  return Status::Ok();
}

}  // namespace mst
