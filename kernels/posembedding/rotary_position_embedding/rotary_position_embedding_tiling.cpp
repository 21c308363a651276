// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "posembedding/rotary_position_embedding/rotary_position_embedding_tiling.h"

#include <algorithm>
#include <vector>

#include "common/op_args.h"
#include "common/tiling_math.h"

namespace mst {
namespace {

constexpr int64_t kModeInterleave = 1;  // values of the attribute
constexpr int64_t kModeQuarter = 2;
constexpr int64_t kTileElementsCpu = 2048;  // all tiles together stay in L1
constexpr int64_t kReservedCard = 8192;     // what Select takes for itself

// Axis by axis, from the last but one: appends to the innermost group or opens a new one.
class Grouper {
 public:
  void Add(int64_t size, bool varies) {
    if (size == 1) return;
    if (groups_.empty() || groups_.back().varies != varies) {
      groups_.push_back({size, varies});
    } else {
      groups_.back().size *= size;
    }
  }

  Status Into(const OpArgs& args, RotaryPositionEmbeddingProblem* problem) {
    size_t next = 0;
    problem->I = next < groups_.size() && !groups_[next].varies ? groups_[next++].size : 1;
    problem->V = next < groups_.size() ? groups_[next++].size : 1;
    problem->axes = static_cast<int32_t>(groups_.size() - next);
    if (problem->axes > kRopeAxes) {
      return ValueErrorFor(args, "axes of 'x' that 'cos' has and has not must alternate at most %d times, but got %d.",
                           kRopeAxes, problem->axes);
    }
    for (int32_t axis = problem->axes - 1; axis >= 0; --axis, ++next) {
      problem->axisSize[axis] = groups_[next].size;
      problem->axisVaries[axis] = groups_[next].varies;
    }
    return Status::Ok();
  }

 private:
  struct Group {
    int64_t size;
    bool varies;
  };
  std::vector<Group> groups_;
};

Status SameShape(const OpArgs& args, const char* name, const char* other) {
  const Shape& shape = args.Input(name).shape;
  const Shape& expected = args.Input(other).shape;
  if (shape == expected) return Status::Ok();
  return ValueErrorFor(args, "shape of '%s' must be that of '%s' %s, but got %s.", name, other,
                       ToString(expected).c_str(), ToString(shape).c_str());
}

Status ProblemOf(const OpArgs& args, const char* xName, RotaryPositionEmbeddingProblem* problem) {
  *problem = {};
  const Shape& x = args.Input(xName).shape;
  const Shape& table = args.Input("cos").shape;
  const int64_t mode = args.Int("mode");
  const bool isQuarter = mode == kModeQuarter;
  MST_RETURN_IF_ERROR(SameShape(args, "sin", "cos"));
  if (x.empty() || table.empty() || table.size() > x.size()) {
    return ValueErrorFor(args, "rank of 'cos' must be from 1 to the rank of '%s' (%zu), but got %zu.", xName, x.size(),
                         table.size());
  }
  const int64_t unit = isQuarter ? 4 : 2;
  if (x.back() == 0 || x.back() % unit != 0) {
    return ValueErrorFor(args, "the last axis of '%s' must be a positive multiple of %ld, but got %ld.", xName,
                         static_cast<long>(unit), static_cast<long>(x.back()));
  }
  Grouper groups;
  if (isQuarter) groups.Add(2, true);
  const size_t lead = x.size() - table.size();
  for (size_t axis = x.size(); axis-- > 0;) {
    const int64_t size = x[axis];
    const int64_t own = axis < lead ? 1 : table[axis - lead];
    const bool isLast = axis + 1 == x.size();
    if (own != size && (own != 1 || isLast)) {
      return ValueErrorFor(args,
                           "shape of 'cos' must broadcast to that of '%s' %s with the same last axis, but got %s.",
                           xName, ToString(x).c_str(), ToString(table).c_str());
    }
    if (!isLast) groups.Add(size, own != 1);
  }
  problem->D = isQuarter ? x.back() / 2 : x.back();
  problem->mode = mode == kModeInterleave ? kRopeInterleave : kRopeHalf;
  problem->xBytes = SizeOf(args.Input(xName).dtype);
  problem->tableBytes = SizeOf(args.Input("cos").dtype);
  return groups.Into(args, problem);
}

int64_t PitchOf(const RotaryPositionEmbeddingProblem& problem) {
  const int64_t unit = kBlockBytes / problem.xBytes;
  return problem.mode == kRopeHalf ? 2 * RoundUp(problem.D / 2, unit) : RoundUp(problem.D, unit);
}

int64_t OuterOf(const RotaryPositionEmbeddingProblem& problem) {
  int64_t outer = 1;
  for (int32_t axis = 0; axis < problem.axes; ++axis) outer *= problem.axisSize[axis];
  return outer;
}

// A tile of vPerTile x iPerTile rows within the room of `perElement` bytes per element.
Status FitTile(const RotaryPositionEmbeddingProblem& problem, const Platform& platform, int64_t perElement,
               int64_t pitch, int64_t* vPerTile, int64_t* iPerTile) {
  const int64_t room = platform.ubBytes - pitch * 4 - (platform.isCpu() ? 0 : kReservedCard);
  const int64_t fitting = room / perElement / pitch;
  if (fitting < 1) {
    return Status::ValueError("For 'RotaryPositionEmbedding', a row must be at most " +
                              std::to_string(room / perElement) + " elements, but got " + std::to_string(problem.D) +
                              ".");
  }
  const int64_t wanted = platform.isCpu() ? kTileElementsCpu : kTileBytesCard / problem.xBytes;
  const int64_t rows = std::min({std::max<int64_t>(1, wanted / pitch), fitting, kRowsPerTileMax});
  *iPerTile = std::max<int64_t>(1, std::min(problem.I, rows));
  *vPerTile = problem.I > rows ? 1 : std::max<int64_t>(1, std::min(problem.V, rows / *iPerTile));
  return Status::Ok();
}

Status RowsTiling(const RotaryPositionEmbeddingProblem& problem, const Platform& platform,
                  RotaryPositionEmbeddingTilingData* data) {
  *data = {};
  data->V = problem.V;
  data->I = problem.I;
  data->outer = OuterOf(problem);
  data->D = problem.D;
  data->pitch = PitchOf(problem);
  data->axes = problem.axes;
  data->mode = problem.mode;
  data->buffers = platform.isCpu() ? 1 : 2;
  int64_t stride = problem.V;
  for (int32_t axis = problem.axes - 1; axis >= 0; --axis) {
    data->axisSize[axis] = problem.axisSize[axis];
    data->axisTableStride[axis] = problem.axisVaries[axis] ? stride : 0;
    if (problem.axisVaries[axis]) stride *= problem.axisSize[axis];
  }

  const bool isFloat = problem.xBytes == 4;
  // x and y tiles, their float copies for 16-bit types; both tables as stored and as floats
  int64_t perElement = 2 * problem.xBytes * data->buffers + (isFloat ? 0 : 2 * 4) + 2 * (problem.tableBytes + 4);
  // both neighbours of each element, of x and of sin, the partner as float for 16-bit types, the bits that choose
  if (problem.mode == kRopeInterleave) {
    perElement += 2 * problem.xBytes * data->buffers + 2 * problem.tableBytes + (isFloat ? 0 : 4) + 1;
  }
  MST_RETURN_IF_ERROR(FitTile(problem, platform, perElement, data->pitch, &data->vPerTile, &data->iPerTile));
  data->tiles = CeilDiv(problem.V, data->vPerTile) * data->outer * CeilDiv(problem.I, data->iPerTile);
  const int64_t bytes = 2 * data->outer * problem.V * problem.I * problem.D * problem.xBytes;
  data->streams = StreamsPastCaches(platform, bytes / 2);
  data->head.cores = CoresForBytes(platform, data->tiles, bytes);
  return Status::Ok();
}

}  // namespace

Status RotaryPositionEmbeddingProblemOf(const OpArgs& args, RotaryPositionEmbeddingProblem* problem) {
  return ProblemOf(args, "x", problem);
}

Status RotaryPositionEmbeddingInferShape(const OpArgs& args, std::vector<Shape>* outputs) {
  *outputs = {args.Input("x").shape};
  return Status::Ok();
}

Status RotaryPositionEmbeddingTiling(const RotaryPositionEmbeddingProblem& problem, const Platform& platform,
                                     RotaryPositionEmbeddingTilingData* data) {
  return RowsTiling(problem, platform, data);
}

Status RotaryPositionEmbeddingGradProblemOf(const OpArgs& args, RotaryPositionEmbeddingGradProblem* problem) {
  return ProblemOf(args, "dy", problem);
}

Status RotaryPositionEmbeddingGradInferShape(const OpArgs& args, std::vector<Shape>* outputs) {
  *outputs = {args.Input("dy").shape};
  return Status::Ok();
}

Status RotaryPositionEmbeddingGradTiling(const RotaryPositionEmbeddingGradProblem& problem, const Platform& platform,
                                         RotaryPositionEmbeddingGradTilingData* data) {
  return RowsTiling(problem, platform, data);
}

Status RotaryPositionEmbeddingTableGradProblemOf(const OpArgs& args, RotaryPositionEmbeddingTableGradProblem* problem) {
  MST_RETURN_IF_ERROR(SameShape(args, "dy", "x"));
  return ProblemOf(args, "x", problem);
}

Status RotaryPositionEmbeddingTableGradInferShape(const OpArgs& args, std::vector<Shape>* outputs) {
  *outputs = {args.Input("cos").shape, args.Input("sin").shape};
  return Status::Ok();
}

Status RotaryPositionEmbeddingTableGradTiling(const RotaryPositionEmbeddingTableGradProblem& problem,
                                              const Platform& platform,
                                              RotaryPositionEmbeddingTableGradTilingData* data) {
  *data = {};
  data->V = problem.V;
  data->I = problem.I;
  data->D = problem.D;
  data->pitch = PitchOf(problem);
  data->mode = problem.mode;
  data->buffers = platform.isCpu() ? 1 : 2;
  int64_t varying = 1;
  data->repeats = 1;
  int64_t stride = OuterOf(problem);
  for (int32_t axis = 0; axis < problem.axes; ++axis) {
    const int64_t size = problem.axisSize[axis];
    stride = size == 0 ? 0 : stride / size;
    if (problem.axisVaries[axis]) {
      data->varyingSize[data->varyingAxes] = size;
      data->varyingStride[data->varyingAxes++] = stride;
      varying *= size;
    } else {
      data->repeatedSize[data->repeatedAxes] = size;
      data->repeatedStride[data->repeatedAxes++] = stride;
      data->repeats *= size;
    }
  }

  const bool isFloat = problem.xBytes == 4;
  // dy and x tiles, their float copies for 16-bit types, a product; both sums and both results
  int64_t perElement =
      2 * problem.xBytes * data->buffers + (isFloat ? 0 : 2 * 4) + 4 + 2 * 4 + 2 * problem.tableBytes * data->buffers;
  // both neighbours of each element of x, their float copy, and the bits that choose
  if (problem.mode == kRopeInterleave) perElement += 2 * problem.xBytes * data->buffers + (isFloat ? 0 : 4) + 1;
  MST_RETURN_IF_ERROR(FitTile(problem, platform, perElement, data->pitch, &data->vPerTile, &data->iPerTile));
  data->tiles = varying * CeilDiv(problem.V, data->vPerTile);
  if (data->tiles > platform.vectorCores) {  // as many for every core
    data->vPerTile = CeilDiv(problem.V, RoundUp(data->tiles, platform.vectorCores) / varying);
    data->tiles = varying * CeilDiv(problem.V, data->vPerTile);
  }
  const int64_t bytes = 2 * OuterOf(problem) * problem.V * problem.I * problem.D * problem.xBytes;
  data->streams = StreamsPastCaches(platform, bytes / 2);
  data->head.cores = CoresForBytes(platform, data->tiles, bytes);
  return Status::Ok();
}

}  // namespace mst
