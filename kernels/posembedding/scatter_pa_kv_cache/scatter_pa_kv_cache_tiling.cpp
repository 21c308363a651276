// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "posembedding/scatter_pa_kv_cache/scatter_pa_kv_cache_tiling.h"

#include <algorithm>
#include <vector>

#include "common/op_args.h"
#include "common/tiling_math.h"

namespace mst {
namespace {

constexpr int64_t kTileBytesCpu = 4096;  // reads and writes of tiles of a few KB overlap
constexpr int64_t kSlotsPerTile = 1024;

struct Pieces {
  int64_t count;
  int64_t length;
};

// Checks one cache against the tokens [T, N, D] written into it.
Status CheckCache(const OpArgs& args, const char* tokensName, const char* cacheName, int64_t* blocks,
                  int64_t* blockSize, Pieces* pieces) {
  const Shape& tokens = args.Input(tokensName).shape;
  const Shape& cache = args.Input(cacheName).shape;
  const std::string& mode = args.Str("cache_mode");
  const int64_t heads = tokens[1];
  const int64_t headDim = tokens[2];
  if (cache.size() != 4) {
    return ValueErrorFor(args, "rank of '%s' must be 4, but got %zu.", cacheName, cache.size());
  }
  Shape expected;
  if (mode == "PA_NZ") {
    const int64_t unit = kBlockBytes / SizeOf(args.Input(cacheName).dtype);
    if (heads * headDim % unit != 0) {
      return ValueErrorFor(args,
                           "the elements of a token of '%s' must be a multiple of %ld in mode PA_NZ, but got %ld.",
                           tokensName, static_cast<long>(unit), static_cast<long>(heads * headDim));
    }
    *pieces = {heads * headDim / unit, unit};
    *blockSize = cache[2];
    expected = {cache[0], pieces->count, cache[2], unit};
  } else if (mode == "NHSD") {
    *pieces = {heads, headDim};
    *blockSize = cache[2];
    expected = {cache[0], heads, cache[2], headDim};
  } else {
    *pieces = {heads, headDim};
    *blockSize = cache[1];
    expected = {cache[0], cache[1], heads, headDim};
  }
  if (cache != expected) {
    return ValueErrorFor(args, "shape of '%s' must be %s to hold '%s' in mode %s, but got %s.", cacheName,
                         ToString(expected).c_str(), tokensName, mode.c_str(), ToString(cache).c_str());
  }
  *blocks = cache[0];
  return Status::Ok();
}

Status ProblemOf(const OpArgs& args, ScatterPaKvCacheProblem* problem) {
  *problem = {};
  problem->isNorm = args.Str("cache_mode") == "Norm";
  problem->tokens = args.Input("key").shape[0];
  problem->elementBytes = SizeOf(args.Input("key_cache").dtype);
  problem->slotBytes = SizeOf(args.Input("slot_mapping").dtype);
  Pieces key;
  MST_RETURN_IF_ERROR(CheckCache(args, "key", "key_cache", &problem->blocks, &problem->blockSize, &key));
  problem->keyPieces = key.count;
  problem->keyPieceLength = key.length;
  if (args.Has("value") != args.Has("value_cache")) {
    return ValueErrorFor(args, "'value' and 'value_cache' must both be given or both be None, but got None for '%s'.",
                         args.Has("value") ? "value_cache" : "value");
  }
  if (!args.Has("value")) return Status::Ok();
  Pieces value;
  int64_t blocks = 0;
  int64_t blockSize = 0;
  MST_RETURN_IF_ERROR(CheckCache(args, "value", "value_cache", &blocks, &blockSize, &value));
  if (blocks != problem->blocks || blockSize != problem->blockSize) {
    return ValueErrorFor(args,
                         "'value_cache' must have %ld blocks of %ld slots as 'key_cache' has, but got %ld of %ld.",
                         static_cast<long>(problem->blocks), static_cast<long>(problem->blockSize),
                         static_cast<long>(blocks), static_cast<long>(blockSize));
  }
  problem->valuePieces = value.count;
  problem->valuePieceLength = value.length;
  return Status::Ok();
}

Status CheckSlots(const OpArgs& args) {
  ScatterPaKvCacheProblem problem;
  MST_RETURN_IF_ERROR(ProblemOf(args, &problem));
  const std::vector<int64_t> slots = args.Values("slot_mapping");
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] >= problem.blocks * problem.blockSize) {
      return ValueErrorFor(args, "values of 'slot_mapping' must be less than %ld blocks times %ld slots, but got %ld.",
                           static_cast<long>(problem.blocks), static_cast<long>(problem.blockSize),
                           static_cast<long>(slots[i]));
    }
  }
  return Status::Ok();
}

Status SlotTiling(const ScatterPaKvCacheProblem& problem, const Platform& platform, bool copies,
                  ScatterPaKvCacheTilingData* data) {
  *data = {};
  data->tokens = problem.tokens;
  data->blockSize = problem.blockSize;
  data->slots = problem.blocks * problem.blockSize;
  data->keyPieces = problem.keyPieces;
  data->keyPieceLength = problem.keyPieceLength;
  data->valuePieces = problem.valuePieces;
  data->valuePieceLength = problem.valuePieceLength;
  data->isNorm = problem.isNorm;
  data->slotsPerTile = kSlotsPerTile;

  const int64_t unit = kBlockBytes / problem.elementBytes;
  const int64_t longest = RoundUp(std::max(problem.keyPieceLength, problem.valuePieceLength), unit);
  // slot numbers, five tiles that come of them, a bit for each; what tells that the caches are written
  const int64_t room = platform.ubBytes - kSlotsPerTile * (problem.slotBytes + 5 * 4) - kSlotsPerTile / 8 - kBlockBytes;
  const int64_t wanted = (platform.isCpu() ? kTileBytesCpu : kTileBytesCard) / problem.elementBytes;
  data->tileElements = problem.isNorm ? wanted : std::max(wanted, longest);
  const int64_t tileBytes = data->tileElements * problem.elementBytes;
  data->buffers =
      platform.isCpu() ? 1 : static_cast<int32_t>(std::clamp<int64_t>(room / tileBytes, 2, kScatterBuffers));
  if (tileBytes * data->buffers > room) {
    return Status::ValueError("For 'ScatterPaKvCache', a head must be at most " +
                              std::to_string(room / data->buffers / problem.elementBytes) +
                              " elements in this mode, but got " + std::to_string(longest) + ".");
  }
  const int64_t keyElements = problem.keyPieces * problem.keyPieceLength;
  const int64_t valueElements = problem.valuePieces * problem.valuePieceLength;
  const int64_t rowElements = std::max<int64_t>(1, std::max(keyElements, valueElements));
  while (2 * rowElements * problem.elementBytes << data->groupShift <= kTileBytesCard) ++data->groupShift;

  const int64_t moved = problem.tokens + (copies ? data->slots : 0);
  const int64_t bytes = 2 * moved * (keyElements + valueElements) * problem.elementBytes;
  data->streams = StreamsPastCaches(platform, bytes / 2);
  data->head.cores = CoresForBytes(platform, moved, bytes);
  if (copies) data->head.cores = std::min(data->head.cores, platform.vectorCores);  // they wait for each other
  return Status::Ok();
}

}  // namespace

Status ScatterPaKvCacheProblemOf(const OpArgs& args, ScatterPaKvCacheProblem* problem) {
  return ProblemOf(args, problem);
}

Status ScatterPaKvCacheInferShape(const OpArgs&, std::vector<Shape>* outputs) {
  *outputs = {{1}};
  return Status::Ok();
}

Status ScatterPaKvCacheCheckValues(const OpArgs& args) { return CheckSlots(args); }

Status ScatterPaKvCacheTiling(const ScatterPaKvCacheProblem& problem, const Platform& platform,
                              ScatterPaKvCacheTilingData* data) {
  MST_RETURN_IF_ERROR(SlotTiling(problem, platform, false, data));
  data->head.cores = std::max(1, data->head.cores);  // `done` is written in any case
  return Status::Ok();
}

Status ScatterPaKvCacheCopyProblemOf(const OpArgs& args, ScatterPaKvCacheCopyProblem* problem) {
  return ProblemOf(args, problem);
}

Status ScatterPaKvCacheCopyInferShape(const OpArgs& args, std::vector<Shape>* outputs) {
  *outputs = {args.Input("key_cache").shape, args.Has("value_cache") ? args.Input("value_cache").shape : Shape{0}};
  return Status::Ok();
}

Status ScatterPaKvCacheCopyCheckValues(const OpArgs& args) { return CheckSlots(args); }

Status ScatterPaKvCacheCopyTiling(const ScatterPaKvCacheCopyProblem& problem, const Platform& platform,
                                  ScatterPaKvCacheCopyTilingData* data) {
  return SlotTiling(problem, platform, true, data);
}

}  // namespace mst
