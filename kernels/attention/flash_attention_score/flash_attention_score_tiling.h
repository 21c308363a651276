// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// What the host tells the FlashAttentionScore kernels, forward and gradient.
#ifndef MST_ATTENTION_FLASH_ATTENTION_SCORE_TILING_H_
#define MST_ATTENTION_FLASH_ATTENTION_SCORE_TILING_H_

#include <cstdint>

#include "common/tiling_head.h"

namespace mst {

constexpr int32_t kFlashMaxCores = 256;     // logical cores that the unit table has room for
constexpr int32_t kFlashColsUnit = 32;      // columns of a strip: a block of mask bytes
constexpr int32_t kFlashCardCols = 64;      // forward, depth 1: a repeat of floats
constexpr int32_t kFlashFractalRows = 16;   // of a matrix in L1
constexpr int32_t kFlashStatCopies = 8;     // each row's maximum and sum fill one block of the unified buffer
constexpr int32_t kFlashWorkBytes = 8192;   // temporaries of softmax beyond a strip
constexpr int32_t kFlashSpreadRows = 64;    // forward: rows whose statistics are spread over blocks at a time
constexpr int64_t kFlashMaxPitch = 65535;   // elements between two rows that a copy into L1 can skip
constexpr int32_t kFlashDenseBytes = 8192;  // buffer through which rows further apart are brought together
constexpr int32_t kFlashRowBuffers = 5;     // gradient: rows of floats in UB for the careful mode
constexpr int32_t kFlashSpareRows = 8;      // gradient: rows of statistics beyond a block, which Brcb may fill
// gradient: a kv head is a unit; or its rows are cut into units for dq and its keys into units for dk and dv; or its
// keys are cut and each unit adds to the dq of all rows.
constexpr int32_t kFlashGradWhole = 0;
constexpr int32_t kFlashGradSplit = 1;
constexpr int32_t kFlashGradRanges = 2;
// gradient: tasks that have scores in the workspace. The cube begins with those of the next one before it is done with
// what the last one of `depth` adds.
constexpr int32_t FlashGradPlaces(int32_t depth) { return 3 * depth + 1; }
// gradient: times keyRows keys whose dk and dv are in the workspace: a range is written while the next one is summed.
constexpr int32_t FlashGradKeyPlaces(int32_t cut) { return cut == kFlashGradRanges ? 2 : 1; }

// forward: tasks that have products or factors at a time, and blocks that have statistics. The factors of a strip take
// the place of those of the task three before, whose rows are added at least as far by then.
constexpr int32_t FlashPlaces(int32_t depth) { return 2 * depth + 1; }
// forward: floats of a row's maximum, sum or factor in UB. SoftmaxFlashV2, which depth 0 uses, wants blocks.
constexpr int32_t FlashStatWidth(int32_t depth) { return depth != 0 ? 1 : kFlashStatCopies; }
// forward: of a block of rows; a compare works on 64 floats at a time.
constexpr int32_t FlashStatFloats(int32_t qRows, int32_t depth) {
  return (qRows * FlashStatWidth(depth) + 63) / 64 * 64;
}
// forward: temporaries of a block's statistics, of the sum of its output, and some of the former spread over blocks.
constexpr int32_t FlashSpareFloats(int32_t qRows, int32_t dvPad, int32_t depth) {
  const int32_t statistics = FlashStatFloats(qRows, depth), spread = kFlashSpreadRows * kFlashStatCopies * depth;
  const int32_t sum = 8 + ((qRows * dvPad + 63) / 64 + 7) / 8 * 8;
  const int32_t most = statistics > spread ? statistics : spread;
  return most > sum ? most : sum;
}

// Of kFlashWorkBytes the softmax of depth 1 needs none: it has buffers of its own.
constexpr int32_t FlashForwardWorkBytes(int32_t depth) { return depth != 0 ? 0 : kFlashWorkBytes; }
// Bytes of these, with strips of so many rows and floats.
constexpr int32_t FlashSoftmaxBytes(int32_t stripRows, int32_t strip) {
  const int32_t rowFloats = (stripRows + 7) / 8 * 8;
  return 2 * (strip / 8 * 4 + stripRows * 32 + rowFloats * 4) + rowFloats * 4 + rowFloats * 32;
}

// Bytes that a row of drop_mask bits takes in UB: kvCols bits that start at any bit, and two bytes more.
constexpr int32_t FlashDropRowBytes(int32_t kvCols) { return (kvCols / 8 + 4 + 31) / 32 * 32; }
constexpr int32_t kFlashGeneratorRows = 4;  // rows whose dropout is generated at once
// Bytes in UB for a row of column numbers and the bits of a group.
constexpr int32_t FlashGeneratorBytes(int32_t kvCols) { return kvCols * 4 + kFlashGeneratorRows * kvCols / 8; }

// The blocks in which the cube multiplies, for host and device: `rows` of the left operand by up to 128 columns of the
// right one, along K as many elements as two blocks in L0A and L0B of 64 KB leave room for. A left operand that is not
// in L1 comes from GM block by block, through two buffers there if it is more than one.
constexpr int32_t kFlashCubeRows = 128;
constexpr int32_t kFlashCubeCols = 128;
constexpr int32_t FlashCubeSide(int64_t size, int32_t most) {
  const int64_t sides = size > most ? (size + most - 1) / most : 1;
  return static_cast<int32_t>((size + 16 * sides - 1) / (16 * sides) * 16);
}
constexpr int32_t FlashCubeDepth(int64_t K, int64_t elementBytes) {
  const int64_t unit = 32 / elementBytes, most = 32768 / (kFlashCubeCols * elementBytes);
  return static_cast<int32_t>(K < most ? (K + unit - 1) / unit * unit : most);
}
constexpr int32_t FlashCubeLeftBuffers(int64_t M, int64_t K, int32_t rows, int64_t elementBytes) {
  return M > rows || K > FlashCubeDepth(K, elementBytes) ? 2 : 1;
}
// Bytes of L1 that a Matmul object takes for its left operand.
constexpr int64_t FlashCubeLeftBytes(int64_t M, int64_t K, int32_t rows, int64_t elementBytes) {
  return int64_t{FlashCubeLeftBuffers(M, K, rows, elementBytes)} * FlashCubeSide(M, rows) *
         FlashCubeDepth(K, elementBytes) * elementBytes;
}

// The call. Strides are in elements; a packed layout has the sequences one after the other in rows, batch strides 0.
struct FlashAttentionScoreShape {
  int64_t B;     // batch elements, or packed sequences
  int64_t N;     // query heads
  int64_t Nkv;   // key and value heads
  int64_t D;     // width of a query and key head
  int64_t Dv;    // width of a value head
  int64_t Sq;    // query rows of a batch element; packed: of all sequences
  int64_t Skv;   // keys of a batch element; packed: of all sequences
  int64_t qRow;  // query: distance of two rows, heads, batch elements
  int64_t qHead;
  int64_t qBatch;
  int64_t kRow;
  int64_t kHead;
  int64_t kBatch;
  int64_t vRow;
  int64_t vHead;
  int64_t vBatch;
  int64_t outRow;  // attention_out
  int64_t outHead;
  int64_t outBatch;
  int64_t statRow;  // softmax_max and softmax_sum
  int64_t statHead;
  int64_t statBatch;
  int64_t pseRow;   // real_shift of types 0 and 1, 0 where it is broadcast; packed: the full [N, Lq, Lkv] of each
  int64_t pseHead;  // sequence, the strides unused
  int64_t pseBatch;
  int64_t pseCount;    // elements of real_shift
  int64_t slopeBatch;  // slopes of types 2 and 3: N, or 0 where they are shared by the batch
  int64_t maskRows;    // rows of the one attn_mask of all packed sequences
  int64_t maskRow;     // attn_mask, in bytes
  int64_t maskHead;
  int64_t maskBatch;
  int64_t dropBytes;  // length of drop_mask
  int64_t preTokens;
  int64_t nextTokens;
  int64_t bandSequence;  // modes 7 and 8: the sequence that has the band; -1 without
  int64_t qStart;        // positions of the first query and key for the slopes
  int64_t kvStart;
  int32_t packed;  // 1: layout TND
  int32_t sparseMode;
  int32_t hasMask;   // 1: attn_mask is read; a compressed one is not
  int32_t pseType;   // -1 without real_shift
  int32_t dropKind;  // 0 none, 1 drop_mask, 2 generated from seed and offset
  int32_t hasPrefix;
  int32_t hasSink;
  float scale;
  float keepProb;
  float softcap;  // 0: none
};

// Whether scores are biased, capped, masked or dropped: then they take a strip of temporaries.
constexpr bool FlashChangesScores(const FlashAttentionScoreShape& s) {
  return s.pseType >= 0 || s.softcap > 0.0f || s.hasMask != 0 || s.dropKind != 0;
}
// Whether the numbers of keys and rows count: for a band, slopes, or columns beyond the last key.
constexpr bool FlashNeedsIndex(const FlashAttentionScoreShape& s) {
  return s.sparseMode != 0 || s.hasMask != 0 || s.pseType >= 2 || s.packed != 0 || s.Skv % kFlashCardCols != 0;
}
// Floats of the work strip: for a bias or a mask of the strip's size, or for the three temporaries of a group.
constexpr int32_t FlashWorkFloats(const FlashAttentionScoreShape& s, int32_t stripRows, int32_t kvCols) {
  if (!FlashChangesScores(s)) return 0;
  return (s.dropKind == 2 && stripRows < 3 * kFlashGeneratorRows ? 3 * kFlashGeneratorRows : stripRows) * kvCols;
}

// Sizes of the pieces. Key blocks start at multiples of kvCols, query blocks at multiples of qRows.
struct FlashAttentionScoreTiles {
  int32_t qRows;        // query rows of a block
  int32_t kvCols;       // keys of a block
  int32_t stripRows;    // rows of the scores of a block that are in UB at a time
  int32_t stripFloats;  // of the buffers for a strip of scores or a few rows of output
  int32_t outElements;  // of the buffer for probabilities or a few rows of output on their way out
  int32_t chunkRows;    // query rows of a unit, a multiple of qRows
  int32_t superRows;    // keys and values in L1 at a time, a multiple of kvCols; forward: keys, or a part of kvCols
  int32_t walkRows;     // forward: keys that a block walks before the next one, a multiple of kvCols
  int32_t depth;        // 1: the cube is ahead of the vector unit; forward: only if walkRows are all keys
  int32_t colsUnit;     // forward: the columns of a strip are a multiple of it
  int32_t scorePlaces;  // forward: tasks with scores or probabilities in the workspace; depth 1 has one more place
  int32_t scoreRow;     // scores in the workspace: floats from one row to the next
  int32_t dPad;         // D and Dv rounded up to 16
  int32_t dvPad;
};

// Lengths and prefixes that the host can read; nullptr while they are not known.
using HostInt64 = const int64_t*;

struct FlashAttentionScoreProblem {
  FlashAttentionScoreShape shape;
  int64_t elementBytes;  // of query
  HostInt64 qEnds;       // packed: where each sequence ends
  HostInt64 kvEnds;
  HostInt64 prefix;
};

struct FlashAttentionScoreGradProblem {
  FlashAttentionScoreProblem forward;  // everything but the gradients' shapes, which follow from it
};

struct FlashAttentionScoreTilingData {
  TilingHead head;
  FlashAttentionScoreShape shape;
  FlashAttentionScoreTiles tiles;
  int64_t coreWorkspaceBytes;             // of each core, one after the other
  int64_t denseBytes;                     // of these: keys and values of a super-block whose rows are far apart
  int64_t unitBegin[kFlashMaxCores + 1];  // a core works on units [unitBegin[core], unitBegin[core + 1])
};

struct FlashAttentionScoreGradTilingData {
  TilingHead head;
  FlashAttentionScoreShape shape;
  FlashAttentionScoreTiles tiles;         // chunkRows: query rows whose dq is summed at a time
  int64_t coreWorkspaceBytes;             // of each core, one after the other; ranges: then come the slots
  int64_t tileBytes;                      // of these: what tasks under way have there
  int64_t denseBytes;                     // of these: operands whose rows are far apart
  int64_t deltaRows;                      // rows whose delta a core has in the workspace
  int64_t keyRows;                        // keys whose dk and dv a core sums at a time
  int64_t rangeKeys;                      // split, ranges: keys of a unit that gives dk and dv, a multiple of kvCols
  int64_t pairUnits;                      // units that give dq, dk and dv; then come
  int64_t pseUnits;                       //   units of a real_shift that several pairs share, and
  int64_t sinkUnits;                      //   one for each head with sink
  int32_t cut;                            // kFlashGradWhole, kFlashGradSplit or kFlashGradRanges
  int32_t keyCopies;                      // of a super-block in L1
  int32_t pseDirect;                      // 1: each pair has its own element of dreal_shift
  int64_t unitBegin[kFlashMaxCores + 1];  // a core works on units [unitBegin[core], unitBegin[core + 1])
  int64_t slotBegin[kFlashMaxCores + 1];  // ranges: a core sums dq of kv heads in these slots
};

}  // namespace mst

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_TILING_H_
