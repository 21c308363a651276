// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "gmm/swiglu/swiglu_tiling.h"

#include <algorithm>
#include <vector>

#include "common/op_args.h"
#include "common/tiling_math.h"

namespace mst {
namespace {

constexpr int64_t kTileElementsCpu = 1024;  // copies overlap with the work on tiles of a few KB

// The axis counted from the front, once it is known to exist.
Status AxisOf(const OpArgs& args, const Shape& x, size_t* axis) {
  const int64_t rank = static_cast<int64_t>(x.size());
  const int64_t dim = args.Int("dim");
  if (rank == 0) return ValueErrorFor(args, "rank of 'input' must be at least 1, but got 0.");
  if (dim < -rank || dim >= rank) {
    return ValueErrorFor(args, "'dim' must be an axis of 'input', from %ld to %ld, but got %ld.",
                         static_cast<long>(-rank), static_cast<long>(rank - 1), static_cast<long>(dim));
  }
  *axis = static_cast<size_t>(dim < 0 ? dim + rank : dim);
  return Status::Ok();
}

// Also at infer time: unknown dims pass.
Status ProblemOf(const OpArgs& args, SwigluProblem* problem) {
  const Shape& x = args.Input("input").shape;
  *problem = {1, 1, SizeOf(args.Input("input").dtype)};
  if (HasUnknownRank(x)) return Status::Ok();
  size_t axis = 0;
  MST_RETURN_IF_ERROR(AxisOf(args, x, &axis));
  if (x[axis] >= 0 && x[axis] % 2 != 0) {
    return ValueErrorFor(args, "the size of axis %ld of 'input' must be even, but got %ld.",
                         static_cast<long>(args.Int("dim")), static_cast<long>(x[axis]));
  }
  for (size_t i = 0; i < axis; ++i) problem->rows *= x[i];
  for (size_t i = axis; i < x.size(); ++i) problem->H *= i == axis ? x[i] / 2 : x[i];
  if (problem->H == 0) problem->rows = 0;
  return Status::Ok();
}

// `perElement`: bytes of all buffers per element of a tile.
void Tile(const SwigluProblem& problem, const Platform& platform, int64_t perElement, int64_t tensorsMoved,
          SwigluTilingData* data) {
  data->rows = problem.rows;
  data->H = problem.H;
  if (problem.rows == 0) return;
  const int64_t wanted = std::min(platform.isCpu() ? kTileElementsCpu : kTileBytesCard / problem.xBytes,
                                  RoundDown(platform.ubBytes / perElement, kColsUnit));
  const int64_t colTiles = CeilDiv(problem.H, wanted);
  data->colsPerTile = colTiles == 1 ? problem.H : RoundUp(CeilDiv(problem.H, colTiles), kColsUnit);
  data->pitch = RoundUp(data->colsPerTile, kBlockBytes / problem.xBytes);
  data->rowsPerTile = std::min({std::max<int64_t>(1, wanted / data->pitch), problem.rows, kCopyPiecesMax});
  data->tiles = CeilDiv(problem.rows, data->rowsPerTile) * CeilDiv(problem.H, data->colsPerTile);
  data->streams = StreamsPastCaches(platform, (tensorsMoved == 3 ? 1 : 2) * problem.rows * problem.H * problem.xBytes);
  data->head.cores = CoresForBytes(platform, data->tiles, tensorsMoved * problem.rows * problem.H * problem.xBytes);
}

}  // namespace

Status SwigluProblemOf(const OpArgs& args, SwigluProblem* problem) { return ProblemOf(args, problem); }

Status SwigluInferShape(const OpArgs& args, std::vector<Shape>* outputs) {
  Shape y = args.Input("input").shape;
  if (!HasUnknownRank(y)) {
    size_t axis = 0;
    MST_RETURN_IF_ERROR(AxisOf(args, y, &axis));
    if (y[axis] >= 0) y[axis] /= 2;
  }
  *outputs = {y};
  return Status::Ok();
}

Status SwigluTiling(const SwigluProblem& problem, const Platform& platform, SwigluTilingData* data) {
  *data = {};
  data->buffers = platform.isCpu() ? 1 : 2;
  // tiles of both halves and of the output, and float copies of the three for 16-bit types
  const int64_t perElement = 3 * problem.xBytes * data->buffers + (problem.xBytes == 4 ? 0 : 3 * 4);
  Tile(problem, platform, perElement, 3, data);
  return Status::Ok();
}

Status SwigluGradProblemOf(const OpArgs& args, SwigluGradProblem* problem) {
  MST_RETURN_IF_ERROR(ProblemOf(args, problem));
  Shape expected = args.Input("input").shape;
  const Shape& dy = args.Input("doutput").shape;
  if (HasUnknownRank(expected) || HasUnknownRank(dy)) return Status::Ok();
  size_t axis = 0;
  MST_RETURN_IF_ERROR(AxisOf(args, expected, &axis));
  if (expected[axis] >= 0) expected[axis] /= 2;
  bool same = dy.size() == expected.size();
  for (size_t i = 0; same && i < dy.size(); ++i) same = dy[i] < 0 || expected[i] < 0 || dy[i] == expected[i];
  if (!same) {
    return ValueErrorFor(args, "shape of 'doutput' must be %s, but got %s.", ToString(expected).c_str(),
                         ToString(dy).c_str());
  }
  return Status::Ok();
}

Status SwigluGradInferShape(const OpArgs& args, std::vector<Shape>* outputs) {
  *outputs = {args.Input("input").shape};
  return Status::Ok();
}

Status SwigluGradTiling(const SwigluGradProblem& problem, const Platform& platform, SwigluGradTilingData* data) {
  *data = {};
  data->buffers = platform.isCpu() ? 1 : 2;
  // tiles of dy, of both halves and of both halves of the result, and float copies of the first three for 16-bit
  // types; sigmoid and one tile to work in
  const int64_t perElement = 5 * problem.xBytes * data->buffers + (problem.xBytes == 4 ? 0 : 3 * 4) + 2 * 4;
  Tile(problem, platform, perElement, 5, data);
  return Status::Ok();
}

}  // namespace mst
