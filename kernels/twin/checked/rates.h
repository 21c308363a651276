// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// What the cost model knows of the 910B: every figure once, with where it comes from.
//
// Cycles are those of the core's clock. A vector instruction takes as long for a repeat (256 bytes of its widest
// operand) as 64 elements of 32 bits take.
#ifndef MST_TWIN_CHECKED_RATES_H_
#define MST_TWIN_CHECKED_RATES_H_

#include <cstdint>

namespace AscendC {
namespace check {

// Measured: on a card. Derived: from measured figures. Assumed: no figure is known to us.
enum class Origin { kMeasured, kDerived, kAssumed };

struct Rate {
  const char* name;
  double value;
  const char* unit;
  Origin origin;
  const char* note;
};

// Elements of 32 bits per cycle. By element: 16-bit elements are no faster.
struct VectorRate {
  const char* name;
  double elements;
  bool byElement;
  Origin origin;
};
constexpr VectorRate kVectorRates[] = {
    {"Add", 32, false, Origin::kMeasured},
    {"Sub", 32, false, Origin::kDerived},
    {"Mul", 32, false, Origin::kDerived},
    {"Max", 32, false, Origin::kDerived},
    {"Min", 32, false, Origin::kDerived},
    {"And", 32, false, Origin::kDerived},
    {"Or", 32, false, Origin::kDerived},
    {"Muls", 64, false, Origin::kMeasured},
    {"Adds", 64, false, Origin::kDerived},
    {"Maxs", 64, false, Origin::kDerived},
    {"Mins", 64, false, Origin::kDerived},
    {"ShiftLeft", 64, false, Origin::kDerived},
    {"ShiftRight", 64, false, Origin::kDerived},
    {"Abs", 64, false, Origin::kDerived},
    {"Not", 64, false, Origin::kDerived},
    {"Relu", 64, false, Origin::kDerived},
    {"Duplicate", 64, false, Origin::kAssumed},
    {"Copy", 64, false, Origin::kAssumed},
    {"DataCopy", 64, false, Origin::kAssumed},  // within UB
    {"Brcb", 64, false, Origin::kAssumed},
    {"CreateVecIndex", 64, false, Origin::kAssumed},
    {"Cast", 65, false, Origin::kMeasured},  // fp32 to fp16
    {"Exp", 32, false, Origin::kMeasured},
    {"Ln", 32, false, Origin::kAssumed},
    {"Sqrt", 32, false, Origin::kAssumed},
    {"Rsqrt", 32, false, Origin::kAssumed},
    {"Reciprocal", 32, false, Origin::kAssumed},
    {"Div", 16, false, Origin::kMeasured},
    {"Compare", 32, false, Origin::kMeasured},
    {"CompareScalar", 32, false, Origin::kDerived},
    {"Select", 32, false, Origin::kMeasured},
    {"MulAddDst", 10.7, false, Origin::kMeasured},
    {"FusedMulAdd", 10.7, false, Origin::kDerived},
    {"Axpy", 10.7, false, Origin::kAssumed},
    {"WholeReduceSum", 21, false, Origin::kMeasured},
    {"RepeatReduceSum", 21, false, Origin::kDerived},
    {"ReduceSum", 21, false, Origin::kDerived},
    {"WholeReduceMax", 9, false, Origin::kMeasured},
    {"WholeReduceMin", 9, false, Origin::kDerived},
    {"ReduceMax", 9, false, Origin::kDerived},
    {"ReduceMin", 9, false, Origin::kDerived},
    {"BlockReduceSum", 64, false, Origin::kMeasured},
    {"BlockReduceMax", 64, false, Origin::kMeasured},
    {"BlockReduceMin", 64, false, Origin::kMeasured},
    {"PairReduceSum", 64, false, Origin::kDerived},
    {"Gather", 5.3, true, Origin::kMeasured},
    {"GatherMask", 4.6, true, Origin::kMeasured},
    {"Extract", 4.6, true, Origin::kDerived},
    {"Sort32", 2, true, Origin::kAssumed},
    {"MrgSort", 2, true, Origin::kAssumed},
};

// What a function of the high-level API does with its tile, as instructions that wait for each other. Per row: on 64
// lanes, and on the eight copies of a statistic. Assumed as a whole.
enum class Over { kElements, kRowOf64, kRowOf8 };
struct Pass {
  const char* instruction;
  Over over;
  int times;
};
constexpr int kMaxPasses = 16;
struct Sequence {
  const char* name;
  Pass passes[kMaxPasses];
};
constexpr Sequence kSequences[] = {
    {"SoftmaxFlashV2",
     {{"Max", Over::kElements, 1},
      {"BlockReduceMax", Over::kRowOf64, 1},
      {"BlockReduceMax", Over::kRowOf8, 1},
      {"Brcb", Over::kRowOf8, 1},
      {"Max", Over::kRowOf8, 1},
      {"Sub", Over::kRowOf8, 1},
      {"Exp", Over::kRowOf8, 1},
      {"Sub", Over::kElements, 1},
      {"Exp", Over::kElements, 1},
      {"Add", Over::kElements, 1},
      {"BlockReduceSum", Over::kRowOf64, 1},
      {"BlockReduceSum", Over::kRowOf8, 1},
      {"Brcb", Over::kRowOf8, 1},
      {"Mul", Over::kRowOf8, 1},
      {"Add", Over::kRowOf8, 1}}},
    {"SimpleSoftMax", {{"Sub", Over::kElements, 1}, {"Exp", Over::kElements, 1}, {"Div", Over::kElements, 1}}},
    {"SoftMax",
     {{"Max", Over::kElements, 1},
      {"BlockReduceMax", Over::kRowOf64, 1},
      {"BlockReduceMax", Over::kRowOf8, 1},
      {"Brcb", Over::kRowOf8, 1},
      {"Sub", Over::kElements, 1},
      {"Exp", Over::kElements, 1},
      {"Add", Over::kElements, 1},
      {"BlockReduceSum", Over::kRowOf64, 1},
      {"BlockReduceSum", Over::kRowOf8, 1},
      {"Brcb", Over::kRowOf8, 1},
      {"Div", Over::kElements, 1}}},
    {"SoftmaxGradFront",
     {{"Mul", Over::kElements, 1},
      {"Add", Over::kElements, 1},
      {"BlockReduceSum", Over::kRowOf64, 1},
      {"BlockReduceSum", Over::kRowOf8, 1},
      {"Brcb", Over::kRowOf8, 1}}},
    {"Tanh",
     {{"Mins", Over::kElements, 1},
      {"Maxs", Over::kElements, 1},
      {"Muls", Over::kElements, 1},
      {"Exp", Over::kElements, 1},
      {"Adds", Over::kElements, 2},
      {"Div", Over::kElements, 1}}},
    {"Sigmoid",
     {{"Muls", Over::kElements, 1},
      {"Exp", Over::kElements, 1},
      {"Adds", Over::kElements, 1},
      {"Duplicate", Over::kElements, 1},
      {"Div", Over::kElements, 1}}},
    {"SwiGLU",
     {{"Muls", Over::kElements, 1},
      {"Exp", Over::kElements, 1},
      {"Adds", Over::kElements, 1},
      {"Div", Over::kElements, 1},
      {"Mul", Over::kElements, 1}}},
};

// Everything else. kRates is in the order of Figure.
enum Figure {
  kVectorStart,
  kScalarIssue,
  kScalarLocal,
  kScalarGlobal,
  kCopyInStart,
  kCopyInRate,
  kCopyInLatency,
  kCopyOutStart,
  kCopyOutRate,
  kCopyOutLatency,
  kLine,
  kToL0ARate,
  kToL0BRate,
  kFixpipeRate,
  kFp32Slowdown,
  kMessage,
  kSyncAll,
  kHbmRate,
  kL2ReadRate,
  kL2WriteRate,
  kFigures
};
constexpr Rate kRates[kFigures] = {
    {"start of a vector instruction", 20, "cycles", Origin::kAssumed, "seen only by who waits for its result"},
    {"issue of an instruction, flag or queue operation", 10, "cycles", Origin::kAssumed, "scalar unit"},
    {"GetValue, SetValue in UB", 20, "cycles", Origin::kAssumed, "scalar unit"},
    {"GetValue, SetValue in GM", 500, "cycles", Origin::kAssumed, "for the first of 64 bytes; then as in UB"},
    {"GM to UB: start", 45, "cycles", Origin::kDerived, "40 B at 16 KB and 45 B in the limit"},
    {"GM to UB", 45, "B/cycle", Origin::kMeasured, "per vector core"},
    {"GM to UB: latency", 500, "cycles", Origin::kAssumed, "the next copy begins meanwhile"},
    {"UB to GM: start", 72, "cycles", Origin::kDerived, "50 B at 16 KB and 64 B in the limit"},
    {"UB to GM", 64, "B/cycle", Origin::kMeasured, "per vector core"},
    {"UB to GM: latency", 300, "cycles", Origin::kAssumed, "the next copy begins meanwhile"},
    {"line of GM", 512, "B", Origin::kDerived, "a strided copy moves whole lines"},
    {"L1 to L0A", 254, "B/cycle", Origin::kMeasured, "one pipe (MTE1) for both"},
    {"L1 to L0B", 127, "B/cycle", Origin::kMeasured, ""},
    {"L0C to GM", 118, "B/cycle", Origin::kMeasured, ""},
    {"fp32 against fp16 on the cube", 4, "times", Origin::kDerived, "16 x 16 x 4 in place of 16 x 16 x 16"},
    {"message between vector and cube core", 500, "cycles", Origin::kAssumed, "one way"},
    {"SyncAll", 1000, "cycles", Origin::kAssumed, "after the last core has come"},
    {"HBM", 32, "B/cycle", Origin::kMeasured, "per cube core, read and write together"},
    {"L2: read", 110, "B/cycle", Origin::kMeasured, "per cube core"},
    {"L2: write", 86, "B/cycle", Origin::kMeasured, "per cube core"},
};
constexpr double Of(Figure figure) { return kRates[figure].value; }

// Between the points: straight lines; beyond the last: its slope or its rate.
struct Point {
  double at;
  double value;
};
// Bytes of a copy from GM to L1, and its bytes per cycle.
constexpr Point kToL1[] = {{16 << 10, 54}, {64 << 10, 102}, {256 << 10, 152}};
// Side of a cube block, and its fp16 products per cycle.
constexpr Point kMmad[] = {{16, 1685}, {32, 3343}, {64, 3909}, {128, 4096}};
constexpr double kMmadPeak = 4096;

}  // namespace check
}  // namespace AscendC

#endif  // MST_TWIN_CHECKED_RATES_H_
