// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Kernels that are wrong on purpose, each in one way: the checked twin must refuse it and say what, where and why.
// Every case is a kernel and fragments of the text of its violation; the line is that of the marked instruction.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/cpu_entry.h"
#include "kernel_operator.h"
#include "kernel_tiling/kernel_tiling.h"
#include "lib/matmul_intf.h"

extern "C" void mst_launch_begin(const mst::Platform* platform, const mst::GmBuffer* buffers, int count);

namespace {

using namespace AscendC;  // NOLINT: as in kernels

constexpr int kFloats = 1024;  // of the two tensors in global memory
std::vector<float> xData(kFloats, 1.0f), yData(kFloats, 0.0f);
int line;  // of the instruction that breaks the rule

struct Fixture {
  Fixture() {
    x.SetGlobalBuffer(xData.data());
    y.SetGlobalBuffer(yData.data());
    pipe.InitBuffer(in, 2, 1024);
    pipe.InitBuffer(out, 1, 1024);
    pipe.InitBuffer(calc, 1024);
  }
  TPipe pipe;
  TQue<TPosition::VECIN, 2> in;
  TQue<TPosition::VECOUT, 1> out;
  TBuf<TPosition::VECCALC> calc;
  GlobalTensor<float> x, y;
};

#define BREAKS line = __LINE__;

struct Case {
  const char* name;
  void (*kernel)(Fixture&);
  std::vector<const char*> fragments;
  bool hasLine;
};

const Case kCases[] = {
    {"address",
     [](Fixture& f) {
       LocalTensor<float> t = f.calc.Get<float>();
       BREAKS Muls(t[1], t[8], 2.0f, 8);
     },
     {"Muls", "VECCALC", "multiple of 32"},
     true},
    {"count beyond the buffer",
     [](Fixture& f) {
       LocalTensor<float> t = f.calc.Get<float>();
       BREAKS Adds(t, t, 2.0f, 257);
     },
     {"Adds", "VECCALC", "1028", "1024"},
     true},
    {"repeats beyond the buffer",
     [](Fixture& f) {
       LocalTensor<float> t = f.calc.Get<float>();
       BREAKS Add(t, t, t, uint64_t{64}, 4, BinaryRepeatParams(1, 1, 1, 8, 8, 9));
     },
     {"Add", "VECCALC"},
     true},
    {"repeat 0",
     [](Fixture& f) {
       LocalTensor<float> t = f.calc.Get<float>();
       BREAKS Add(t, t, t, uint64_t{64}, 0, BinaryRepeatParams());
     },
     {"Add", "repeat must be from 1 to 255, but is 0"},
     true},
    {"mask too wide",
     [](Fixture& f) {
       LocalTensor<float> t = f.calc.Get<float>();
       BREAKS Add(t, t, t, uint64_t{65}, 1, BinaryRepeatParams());
     },
     {"Add", "mask must cover 1 to 64", "65"},
     true},
    {"empty mask",
     [](Fixture& f) {
       LocalTensor<half> t = f.calc.Get<half>();
       BREAKS Add(t, t, t, uint64_t{0}, 1, BinaryRepeatParams());
     },
     {"Add", "mask must cover 1 to 128"},
     true},
    {"unified buffer too small",
     [](Fixture& f) {
       TBuf<TPosition::VECCALC> more;
       BREAKS f.pipe.InitBuffer(more, 192 * 1024);
     },
     {"InitBuffer", "unified buffer", "ascend910b1"},
     true},
    {"L1 too small",
     [](Fixture& f) {
       TSCM<TPosition::GM, 1> more;
       BREAKS f.pipe.InitBuffer(more, 1, 600 * 1024);
     },
     {"InitBuffer", "L1", "ascend910b1"},
     true},
    {"length of DataCopy",
     [](Fixture& f) {
       LocalTensor<float> t = f.in.AllocTensor<float>();
       BREAKS DataCopy(t, f.x, 9);
     },
     {"DataCopy", "multiple of 32", "36"},
     true},
    {"blocks of DataCopyPad",
     [](Fixture& f) {
       LocalTensor<float> t = f.in.AllocTensor<float>();
       BREAKS DataCopyPad(t, f.x, DataCopyExtParams(4096, 4, 0, 0, 0), DataCopyPadExtParams<float>());
     },
     {"DataCopyPad", "blockCount", "4095"},
     true},
    {"reads beyond a tensor",
     [](Fixture& f) {
       LocalTensor<float> t = f.in.AllocTensor<float>();
       BREAKS DataCopy(t, f.x[kFloats - 8], 16);
     },
     {"DataCopy", "reads", "'x'", "4096"},
     true},
    {"writes beyond a tensor",
     [](Fixture& f) {
       LocalTensor<float> t = f.out.AllocTensor<float>();
       BREAKS DataCopyPad(f.y[kFloats - 1], t, DataCopyExtParams(1, 8, 0, 0, 0));
     },
     {"DataCopyPad", "writes", "'y'"},
     true},
    {"scalar beyond a tensor",
     [](Fixture& f) { BREAKS f.x.GetValue(kFloats); },
     {"GetValue", "outside every tensor"},
     true},
    {"scalar beyond a buffer",
     [](Fixture& f) { BREAKS f.calc.Get<float>().SetValue(256, 1.0f); },
     {"SetValue", "VECCALC"},
     true},
    {"use after FreeTensor",
     [](Fixture& f) {
       LocalTensor<float> t = f.in.AllocTensor<float>();
       f.in.FreeTensor(t);
       BREAKS Muls(t, t, 2.0f, 8);
     },
     {"Muls", "VECIN", "while it is free"},
     true},
    {"use between EnQue and DeQue",
     [](Fixture& f) {
       LocalTensor<float> t = f.in.AllocTensor<float>();
       f.in.EnQue(t);
       BREAKS Muls(t, t, 2.0f, 8);
     },
     {"Muls", "VECIN", "in the queue"},
     true},
    {"EnQue twice",
     [](Fixture& f) {
       LocalTensor<float> t = f.in.AllocTensor<float>();
       f.in.EnQue(t);
       BREAKS f.in.EnQue(t);
     },
     {"EnQue", "VECIN", "in the queue"},
     true},
    {"FreeTensor twice",
     [](Fixture& f) {
       LocalTensor<float> t = f.in.AllocTensor<float>();
       f.in.FreeTensor(t);
       BREAKS f.in.FreeTensor(t);
     },
     {"FreeTensor", "free"},
     true},
    {"AllocTensor without a free buffer",
     [](Fixture& f) {
       f.out.AllocTensor<float>();
       f.out.AllocTensor<float>();
     },
     {"AllocTensor", "no free buffer"},
     false},
    {"DeQue of an empty queue", [](Fixture& f) { f.in.DeQue<float>(); }, {"DeQue", "empty"}, false},
    {"left in the queue",
     [](Fixture& f) {
       LocalTensor<float> t = f.in.AllocTensor<float>();
       f.in.EnQue(t);
     },
     {"VECIN", "end of the kernel"},
     false},
    {"WaitFlag without SetFlag",
     [](Fixture&) { BREAKS WaitFlag<HardEvent::V_MTE3>(0); },
     {"WaitFlag", "waits forever"},
     true},
    {"SetFlag twice",
     [](Fixture&) {
       SetFlag<HardEvent::V_MTE3>(0);
       BREAKS SetFlag<HardEvent::V_MTE3>(0);
     },
     {"SetFlag", "set already"},
     true},
    {"SetFlag without WaitFlag",
     [](Fixture&) { SetFlag<HardEvent::V_MTE3>(1); },
     {"event 1", "never waited for"},
     false},
    {"event id", [](Fixture&) { BREAKS SetFlag<HardEvent::V_MTE3>(8); }, {"SetFlag", "from 0 to 7", "8"}, true},
    {"Matmul writes beyond C",
     [](Fixture& f) {
       using Gm = matmul::MatmulType<TPosition::GM, CubeFormat::ND, float>;
       matmul::Matmul<Gm, Gm, Gm> mm;
       mm.SetOrgShape(16, 16, 16);
       mm.SetSingleShape(16, 16, 16);
       mm.SetTensorA(f.x);
       mm.SetTensorB(f.x);
       BREAKS mm.IterateAll(f.y[kFloats - 255]);
     },
     {"IterateAll", "writes", "'y'"},
     true},
    {"Matmul reads beyond A",
     [](Fixture& f) {
       using Gm = matmul::MatmulType<TPosition::GM, CubeFormat::ND, float>;
       matmul::Matmul<Gm, Gm, Gm> mm;
       mm.SetOrgShape(16, 16, 65, 16);
       mm.SetSingleShape(16, 16, 16);
       mm.SetTensorA(f.x[64]);
       mm.SetTensorB(f.x);
       BREAKS mm.IterateAll(f.y);
     },
     {"IterateAll", "reads", "'x'"},
     true},
};

void RunKernel(void* context, int /*core*/) {
  Fixture fixture;
  static_cast<const Case*>(context)->kernel(fixture);
}

// The text of the violation, or "" without one.
std::string Run(const Case& c) {
  try {
    mst::LaunchKernel(1, RunKernel, const_cast<Case*>(&c));
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

bool Check(const Case& c) {
  line = 0;
  const std::string text = Run(c);
  bool ok = !text.empty();
  for (const char* fragment : c.fragments) ok = ok && text.find(fragment) != std::string::npos;
  if (c.hasLine) ok = ok && text.find("wrong_kernels.cpp:" + std::to_string(line)) != std::string::npos;
  if (!ok) std::printf("FAILED %s: '%s' (line %d)\n", c.name, text.c_str(), line);
  return ok;
}

// What was never written is NaN, in a fresh buffer and in one that comes back.
bool CheckPoison() {
  const Case copiesUnwritten = {"poison",
                                [](Fixture& f) {
                                  LocalTensor<float> t = f.out.AllocTensor<float>();
                                  DataCopy(f.y, t, 8);
                                  f.out.FreeTensor(t);
                                  t = f.out.AllocTensor<float>();
                                  Duplicate(t, 0.0f, 8);
                                  f.out.FreeTensor(t);
                                  t = f.out.AllocTensor<float>();
                                  DataCopy(f.y[8], t, 8);
                                  f.out.FreeTensor(t);
                                },
                                {},
                                false};
  const std::string text = Run(copiesUnwritten);
  const bool ok = text.empty() && std::all_of(yData.begin(), yData.begin() + 16, [](float y) { return std::isnan(y); });
  if (!ok) std::printf("FAILED poison: '%s'\n", text.c_str());
  return ok;
}

}  // namespace

int main() {
  const mst::GmBuffer buffers[] = {{"x", xData.data(), kFloats * 4}, {"y", yData.data(), kFloats * 4}};
  mst_launch_begin(mst::FindPlatform("ascend910b1"), buffers, 2);
  int passed = CheckPoison() ? 1 : 0, failed = 1 - passed;
  for (const Case& c : kCases) (Check(c) ? passed : failed) += 1;
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
