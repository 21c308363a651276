// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Kernels that are wrong on purpose, each in one way: the checked twin must refuse it and say what, where and why.
// Every case is a kernel and fragments of the text of its violation; the line is that of the marked instruction.
#pragma once

#include <vector>

#include "kernel_operator.h"

namespace wrong {

constexpr int kFloats = 1024;  // of the two tensors in global memory
extern std::vector<float> xData, yData;
extern int line;  // of the instruction that breaks the rule

struct Fixture {
  Fixture() {
    x.SetGlobalBuffer(xData.data());
    y.SetGlobalBuffer(yData.data());
    pipe.InitBuffer(in, 2, 1024);
    pipe.InitBuffer(out, 1, 1024);
    pipe.InitBuffer(calc, 1024);
  }
  AscendC::TPipe pipe;
  AscendC::TQue<AscendC::TPosition::VECIN, 2> in;
  AscendC::TQue<AscendC::TPosition::VECOUT, 1> out;
  AscendC::TBuf<AscendC::TPosition::VECCALC> calc;
  AscendC::GlobalTensor<float> x, y;
};

#define BREAKS wrong::line = __LINE__;

struct Case {
  const char* name;
  void (*kernel)(Fixture&);
  std::vector<const char*> fragments;  // none: the kernel is right
  bool hasLine;
  int cores = 1;
  bool inGroups = false;  // of a cube core and two vector cores: `cores` groups
};

extern const std::vector<Case> kLimits;  // of instructions, buffers, queues and flags
extern const std::vector<Case> kOrder;   // of instructions, on one core and between two
extern const std::vector<Case> kCross;   // of cores in groups, and flags between them
extern const std::vector<Case> kValues;  // that were never written

}  // namespace wrong
