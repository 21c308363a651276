// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "posembedding/rms_norm/rms_norm_tiling.h"

#include <algorithm>
#include <vector>

#include "common/op_args.h"
#include "common/tiling_math.h"

namespace mst {
namespace {

constexpr int64_t kTileElementsCpu = 2048;  // all tiles together stay in L1
constexpr int64_t kWholeRowCpu = 8192;      // elements; longer rows are cut
constexpr int64_t kRowsPerChunkMin = 16;    // bounds of a piece of dgamma's sum, in rows
constexpr int64_t kRowsPerChunkMax = 512;
constexpr int64_t kChunks = 240;  // divisible by the vector cores of every 910B

// A tile, and how many columns of what belongs to all rows stay in UB: all of them, or those of the tile.
struct Layout {
  int64_t rows;
  int64_t cols;
  int64_t pitch;
  int64_t residentCols;
};

// The largest tile wanted whose buffers fit:
// perElement * rows * pitch + perResident * residentCols + perRow * rows (rounded up to 8) <= ubBytes.
// Whole rows are wanted, on the CPU only up to kWholeRowCpu.
Layout FitTile(const Platform& platform, int64_t rows, int64_t D, int64_t xBytes, int64_t perElement,
               int64_t perResident, int64_t perRow) {
  const int64_t unit = kBlockBytes / xBytes;
  const int64_t wanted = platform.isCpu() ? kTileElementsCpu : kTileBytesCard / xBytes;
  const int64_t room = platform.ubBytes - 8 * perRow - kBlockBytes;
  const int64_t pitch = RoundUp(D, unit);
  Layout layout = {1, D, pitch, pitch};
  if (!platform.isCpu() || D <= kWholeRowCpu) {
    const int64_t fitting = (room - perResident * pitch) / (perElement * pitch + perRow);
    if (fitting >= 1) {
      layout.rows = std::min({std::max<int64_t>(1, wanted / pitch), fitting, kRowsPerTileMax, rows});
      if (layout.rows > 8) layout.rows = RoundDown(layout.rows, 8);
      return layout;
    }
  }
  const int64_t tiles = CeilDiv(D, wanted);
  layout.cols = layout.pitch = RoundUp(CeilDiv(D, tiles), kColsUnit);
  if (perElement * layout.pitch + perResident * pitch <= room) return layout;
  layout.cols = layout.pitch = RoundDown(room / (perElement + perResident), kColsUnit);
  layout.residentCols = layout.pitch;
  return layout;
}

// x and gamma, shared by the operator and its gradient. Unknown dims (at infer time) pass.
Status SplitShape(const OpArgs& args, int64_t* rows, int64_t* D) {
  const Shape& x = args.Input("x").shape;
  const Shape& gamma = args.Input("gamma").shape;
  *rows = 1;
  *D = 1;
  if (HasUnknownRank(x) || HasUnknownRank(gamma)) return Status::Ok();
  if (gamma.empty() || gamma.size() > x.size()) {
    return ValueErrorFor(args, "rank of 'gamma' must be from 1 to the rank of 'x' (%zu), but got %zu.", x.size(),
                         gamma.size());
  }
  const size_t lead = x.size() - gamma.size();
  for (size_t i = 0; i < gamma.size(); ++i) {
    if (gamma[i] >= 0 && x[lead + i] >= 0 && gamma[i] != x[lead + i]) {
      return ValueErrorFor(args, "shape of 'gamma' must be the last axes of 'x' %s, but got %s.", ToString(x).c_str(),
                           ToString(gamma).c_str());
    }
    *D *= gamma[i];
  }
  for (size_t i = 0; i < lead; ++i) *rows *= x[i];
  if (*D == 0) return ValueErrorFor(args, "'gamma' must not be empty, but got %s.", ToString(gamma).c_str());
  return Status::Ok();
}

}  // namespace

Status RmsNormProblemOf(const OpArgs& args, RmsNormProblem* problem) {
  MST_RETURN_IF_ERROR(SplitShape(args, &problem->rows, &problem->D));
  problem->xBytes = SizeOf(args.Input("x").dtype);
  problem->gammaBytes = SizeOf(args.Input("gamma").dtype);
  problem->epsilon = static_cast<float>(args.Float("epsilon"));
  return Status::Ok();
}

Status RmsNormInferShape(const OpArgs& args, std::vector<Shape>* outputs) {
  int64_t rows, D;
  MST_RETURN_IF_ERROR(SplitShape(args, &rows, &D));
  const Shape& x = args.Input("x").shape;
  const Shape& gamma = args.Input("gamma").shape;
  Shape rstd = x;
  if (HasUnknownRank(gamma)) {
    rstd = {-2};
  } else if (!HasUnknownRank(x)) {
    std::fill(rstd.end() - gamma.size(), rstd.end(), 1);
  }
  *outputs = {x, rstd};
  return Status::Ok();
}

Status RmsNormTiling(const RmsNormProblem& problem, const Platform& platform, RmsNormTilingData* data) {
  data->head = {};
  data->rows = problem.rows;
  data->D = problem.D;
  data->epsilon = problem.epsilon;
  data->oneOverD = static_cast<float>(1.0 / static_cast<double>(problem.D));
  data->buffers = platform.isCpu() ? 1 : 2;

  const bool isFloat = problem.xBytes == 4;
  // x and y tiles, then x as floats and its squares (less where rows are long); for float these live in the y tile.
  const int64_t perElement = data->buffers * 2 * problem.xBytes + (isFloat ? 0 : 2 * 4);
  // gamma as stored, its float copy, and one partial sum per 64 columns
  const int64_t perResident = problem.gammaBytes + (problem.gammaBytes == 4 ? 0 : 4) + 1;
  // rstd in its queue, sums, ones, and rstd spread over a block
  const int64_t perRow = 4 * data->buffers + 4 + 4 + kBlockBytes;
  const Layout layout =
      FitTile(platform, std::max<int64_t>(1, problem.rows), problem.D, problem.xBytes, perElement, perResident, perRow);
  data->rowsPerTile = layout.rows;
  data->colsPerTile = layout.cols;
  data->pitch = layout.pitch;
  data->gammaCols = layout.residentCols;
  const int64_t bytes = problem.rows * problem.D * problem.xBytes;
  data->streams = StreamsPastCaches(platform, bytes);
  data->head.cores = CoresForBytes(platform, problem.rows, 2 * bytes);
  return Status::Ok();
}

Status RmsNormGradProblemOf(const OpArgs& args, RmsNormGradProblem* problem) {
  MST_RETURN_IF_ERROR(SplitShape(args, &problem->rows, &problem->D));
  problem->xBytes = SizeOf(args.Input("x").dtype);
  problem->gammaBytes = SizeOf(args.Input("gamma").dtype);
  return Status::Ok();
}

Status RmsNormGradInferShape(const OpArgs& args, std::vector<Shape>* outputs) {
  *outputs = {args.Input("x").shape, args.Input("gamma").shape};
  return Status::Ok();
}

Status RmsNormGradTiling(const RmsNormGradProblem& problem, const Platform& platform, RmsNormGradTilingData* data) {
  data->head = {};
  data->rows = problem.rows;
  data->D = problem.D;
  data->oneOverD = static_cast<float>(1.0 / static_cast<double>(problem.D));
  data->buffers = platform.isCpu() ? 1 : 2;

  // How dgamma's sum is cut depends on the number of rows only.
  data->chunks =
      std::max(std::min(kChunks, CeilDiv(problem.rows, kRowsPerChunkMin)), CeilDiv(problem.rows, kRowsPerChunkMax));
  data->rowsPerChunk = data->chunks == 0 ? 0 : CeilDiv(problem.rows, data->chunks);

  const bool isFloat = problem.xBytes == 4;
  // dy, x and dx tiles, then float copies of dy and x and one work tile; for float the work tile is the dx tile.
  const int64_t perElement = data->buffers * 3 * problem.xBytes + (isFloat ? 0 : 3 * 4);
  // gamma as stored, its float copy, dgamma's part in its queue, and one partial sum per 64 columns
  const int64_t perResident = problem.gammaBytes + (problem.gammaBytes == 4 ? 0 : 4) + 4 * data->buffers + 1;
  // rstd in its queue, coefficients, squares of rstd, and rstd spread over a block
  const int64_t perRow = 4 * data->buffers + 4 + 4 + kBlockBytes;
  Platform room = platform;  // what is left beside the buffers for a chunk of a split row: rstd and coefficients
  room.ubBytes -= kRowsPerChunkMax * (4 * data->buffers + 4) + kColsUnit * 4;
  const Layout layout = FitTile(room, std::max<int64_t>(1, data->rowsPerChunk), problem.D, problem.xBytes, perElement,
                                perResident, perRow);
  data->rowsPerTile = layout.rows;
  data->colsPerTile = layout.cols;
  data->pitch = layout.pitch;
  data->residentCols = layout.residentCols;
  data->streams = StreamsPastCaches(platform, problem.rows * problem.D * problem.xBytes);

  // All cores wait for each other before dgamma is summed: no more of them than the machine has.
  const int64_t bytes = 3 * problem.rows * problem.D * problem.xBytes;
  data->head.cores = static_cast<int32_t>(
      std::max<int64_t>(1, std::min<int64_t>(platform.vectorCores, CoresForBytes(platform, data->chunks, bytes))));
  const int64_t tileFloats = layout.rows * layout.pitch * problem.xBytes / 4;
  data->sumCols = std::max<int64_t>(kBlockBytes / 4, std::min(RoundUp(CeilDiv(problem.D, data->head.cores), kColsUnit),
                                                              RoundDown(tileFloats / kRmsNormSums, 8)));
  data->head.workspaceBytes = data->chunks * problem.D * 4;
  return Status::Ok();
}

}  // namespace mst
