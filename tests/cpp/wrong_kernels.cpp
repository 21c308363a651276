// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Kernels that are wrong on purpose, each in one way: the checked twin must refuse it and say what, where and why.
// Every case is a kernel and fragments of the text of its violation; the line is that of the marked instruction.
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
  std::vector<const char*> fragments;  // none: the kernel is right
  bool hasLine;
  int cores = 1;
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
    {"copy in, then vector",
     [](Fixture& f) {
       LocalTensor<float> t = f.calc.Get<float>();
       DataCopy(t, f.x, 256);
       BREAKS Adds(f.out.AllocTensor<float>(), t, 1.0f, 256);
     },
     {"Adds: reads bytes [0, 1024) of VECCALC", "DataCopy (MTE2, wrong_kernels.cpp", "write",
      "event MTE2_V is missing"},
     true},
    {"another tile's EnQue and DeQue",
     [](Fixture& f) {
       LocalTensor<float> t = f.in.AllocTensor<float>();
       LocalTensor<float> u = f.in.AllocTensor<float>();
       DataCopy(t, f.x, 256);
       DataCopy(u, f.x, 256);
       f.in.EnQue(u);
       f.in.DeQue<float>();
       BREAKS Adds(f.calc.Get<float>(), t, 1.0f, 256);
     },
     {"Adds: uses VECIN buffer 0, which MTE2 has filled", "no EnQue and DeQue"},
     true},
    {"vector, then vector",
     [](Fixture& f) {
       LocalTensor<float> t = f.calc.Get<float>();
       Duplicate(t, 1.0f, 128);
       BREAKS Muls(t[128], t[64], 2.0f, 128);
     },
     {"Muls: reads bytes [256, 512) of VECCALC", "Duplicate (V,", "PipeBarrier<PIPE_V> is missing"},
     true},
    {"vector writes what vector reads",
     [](Fixture& f) {
       LocalTensor<float> t = f.calc.Get<float>();
       Duplicate(t, 1.0f, 256);
       PipeBarrier<PIPE_V>();
       Muls(t, t[128], 2.0f, 64);
       BREAKS Duplicate(t[128], 1.0f, 8);
     },
     {"Duplicate: writes bytes [512, 544)", "Muls (V,", "may still read", "PipeBarrier<PIPE_V> is missing"},
     true},
    {"vector, then copy out",
     [](Fixture& f) {
       LocalTensor<float> t = f.calc.Get<float>();
       Duplicate(t, 1.0f, 256);
       BREAKS DataCopy(f.y, t, 256);
     },
     {"DataCopy: reads", "VECCALC", "event V_MTE3 is missing"},
     true},
    {"copy out, then vector",
     [](Fixture& f) {
       LocalTensor<float> t = f.calc.Get<float>();
       Duplicate(t, 1.0f, 256);
       SetFlag<HardEvent::V_MTE3>(0);
       WaitFlag<HardEvent::V_MTE3>(0);
       DataCopy(f.y, t, 256);
       PipeBarrier<PIPE_V>();
       BREAKS Duplicate(t, 2.0f, 8);
     },
     {"Duplicate: writes bytes [0, 32)", "may still read", "event MTE3_V is missing"},
     true},
    {"vector, then copy in",
     [](Fixture& f) {
       LocalTensor<float> t = f.calc.Get<float>();
       Duplicate(t, 1.0f, 256);
       BREAKS DataCopy(t, f.x, 8);
     },
     {"DataCopy: writes", "event V_MTE2 is missing"},
     true},
    {"two copies in",
     [](Fixture& f) {
       LocalTensor<float> t = f.in.AllocTensor<float>();
       DataCopy(t, f.x, 64);
       BREAKS DataCopy(t[56], f.x, 8);
     },
     {"DataCopy: writes bytes [224, 256)", "PipeBarrier<PIPE_MTE2> is missing"},
     true},
    {"two copies out",
     [](Fixture& f) {
       LocalTensor<float> t = f.out.AllocTensor<float>();
       Duplicate(t, 1.0f, 256);
       f.out.EnQue(t);
       t = f.out.DeQue<float>();
       DataCopy(f.y, t, 64);
       BREAKS DataCopy(f.y[63], t, 8);
     },
     {"DataCopy: writes bytes [252, 256) of y", "PipeBarrier<PIPE_MTE3> is missing"},
     true},
    {"GetValue of what vector writes",
     [](Fixture& f) {
       LocalTensor<float> t = f.calc.Get<float>();
       Duplicate(t, 1.0f, 8);
       PipeBarrier<PIPE_V>();
       BREAKS t.GetValue(3);
     },
     {"GetValue: reads bytes [12, 16)", "event V_S is missing"},
     true},
    {"GetValue of what was copied in",
     [](Fixture& f) {
       LocalTensor<float> t = f.in.AllocTensor<float>();
       DataCopy(t, f.x, 8);
       f.in.EnQue(t);
       t = f.in.DeQue<float>();
       BREAKS t.GetValue(3);
     },
     {"GetValue: reads", "event MTE2_S is missing"},
     true},
    {"SetValue, then vector",
     [](Fixture& f) {
       LocalTensor<float> t = f.calc.Get<float>();
       for (int i = 0; i < 8; ++i) t.SetValue(i, 1.0f);
       BREAKS Adds(t[8], t, 1.0f, 8);
     },
     {"Adds: reads", "SetValue (S,", "event S_V is missing"},
     true},
    {"global memory copied out and in again",
     [](Fixture& f) {
       LocalTensor<float> t = f.out.AllocTensor<float>();
       Duplicate(t, 1.0f, 256);
       f.out.EnQue(t);
       t = f.out.DeQue<float>();
       DataCopy(f.y, t, 256);
       LocalTensor<float> u = f.in.AllocTensor<float>();
       BREAKS DataCopy(u, f.y[8], 8);
     },
     {"DataCopy: reads bytes [32, 64) of y", "DataCopy (MTE3,", "event MTE3_MTE2 is missing"},
     true},
    {"Matmul of what was copied out",
     [](Fixture& f) {
       LocalTensor<float> t = f.out.AllocTensor<float>();
       Duplicate(t, 1.0f, 256);
       f.out.EnQue(t);
       t = f.out.DeQue<float>();
       DataCopy(f.y, t, 256);
       using Gm = matmul::MatmulType<TPosition::GM, CubeFormat::ND, float>;
       matmul::Matmul<Gm, Gm, Gm> mm;
       mm.SetOrgShape(16, 16, 16);
       mm.SetSingleShape(16, 16, 16);
       mm.SetTensorA(f.y);
       mm.SetTensorB(f.x);
       BREAKS mm.IterateAll(f.y[512]);
     },
     {"IterateAll: reads", "event MTE3_S is missing"},
     true},
    {"Matmul without a wait",
     [](Fixture& f) {
       using Gm = matmul::MatmulType<TPosition::GM, CubeFormat::ND, float>;
       matmul::Matmul<Gm, Gm, Gm> mm;
       mm.SetOrgShape(16, 16, 16);
       mm.SetSingleShape(16, 16, 16);
       mm.SetTensorA(f.x);
       mm.SetTensorB(f.x);
       mm.IterateAll<false>(f.y);
       LocalTensor<float> t = f.in.AllocTensor<float>();
       BREAKS DataCopy(t, f.y, 8);
     },
     {"DataCopy: reads", "IterateAll (M,", "the Matmul is not waited for"},
     true},
    {"Matmul of a buffer in L1 that is not there yet",
     [](Fixture& f) {
       TSCM<TPosition::GM, 1> queue;
       f.pipe.InitBuffer(queue, 1, 1024);
       LocalTensor<float> t = queue.AllocTensor<float>();
       DataCopy(t, f.x, Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0));
       using Gm = matmul::MatmulType<TPosition::GM, CubeFormat::ND, float>;
       using L1 = matmul::MatmulType<TPosition::TSCM, CubeFormat::NZ, float>;
       matmul::Matmul<Gm, L1, Gm> mm;
       mm.SetOrgShape(16, 16, 16);
       mm.SetSingleShape(16, 16, 16);
       mm.SetTensorA(f.x);
       mm.SetTensorB(t);
       BREAKS mm.IterateAll(f.y);
     },
     {"IterateAll: uses TSCM buffer 4, which MTE2 has filled"},
     true},
    {"writes an input",
     [](Fixture& f) {
       LocalTensor<float> t = f.out.AllocTensor<float>();
       BREAKS DataCopy(f.x, t, 8);
     },
     {"DataCopy", "writes the input 'x'"},
     true},
    {"working memory of a reduction",
     [](Fixture& f) {
       TBuf<TPosition::VECCALC> work;
       f.pipe.InitBuffer(work, 32);
       LocalTensor<float> t = f.calc.Get<float>();
       Duplicate(t, 1.0f, 256);
       PipeBarrier<PIPE_V>();
       ReduceMax<float>(t, t, work.Get<float>(), 256);
       PipeBarrier<PIPE_V>();
       BREAKS ReduceMax<float>(t, t, work.Get<float>()[2], 256);
     },
     {"ReduceMax: writes", "[8, 40)"},
     true},
    {"two cores write the same bytes",
     [](Fixture& f) {
       LocalTensor<float> t = f.out.AllocTensor<float>();
       Duplicate(t, 1.0f, 256);
       f.out.EnQue(t);
       t = f.out.DeQue<float>();
       DataCopy(f.y[GetBlockIdx() * 248], t, 256);
       f.out.FreeTensor(t);
     },
     {"DataCopy", "writes bytes [992, 1024) of 'y'", "without a SyncAll"},
     false,
     2},
    {"a core reads what another writes",
     [](Fixture& f) {
       LocalTensor<float> t = f.out.AllocTensor<float>();
       Duplicate(t, 1.0f, 256);
       f.out.EnQue(t);
       t = f.out.DeQue<float>();
       DataCopy(f.y[GetBlockIdx() * 256], t, 256);
       f.out.FreeTensor(t);
       SetFlag<HardEvent::MTE3_MTE2>(0);
       WaitFlag<HardEvent::MTE3_MTE2>(0);
       LocalTensor<float> u = f.in.AllocTensor<float>();
       DataCopy(u, f.y[248], 16);
       f.in.FreeTensor(u);
     },
     {"of 'y'", "reads", "writes", "without a SyncAll"},
     false,
     2},
    {"right: a SyncAll in between",
     [](Fixture& f) {
       LocalTensor<float> t = f.out.AllocTensor<float>();
       Duplicate(t, 1.0f, 256);
       f.out.EnQue(t);
       t = f.out.DeQue<float>();
       DataCopy(f.y[GetBlockIdx() * 256], t, 256);
       f.out.FreeTensor(t);
       SyncAll();
       LocalTensor<float> u = f.in.AllocTensor<float>();
       DataCopy(u, f.y[248], 16);
       f.in.FreeTensor(u);
     },
     {},
     false,
     2},
    {"right: two cores add to the same bytes",
     [](Fixture& f) {
       LocalTensor<float> t = f.out.AllocTensor<float>();
       Duplicate(t, 1.0f, 256);
       f.out.EnQue(t);
       t = f.out.DeQue<float>();
       if (GetBlockIdx() == 0) DataCopy(f.y, t, 256);
       SyncAll();
       SetAtomicAdd<float>();
       DataCopy(f.y, t, 256);
       DataCopy(f.y, t, 128);
       SetAtomicNone();
       f.out.FreeTensor(t);
     },
     {},
     false,
     2},
    {"copies out what was never written",
     [](Fixture& f) {
       LocalTensor<float> t = f.out.AllocTensor<float>();
       Duplicate(t, 0.0f, 8);
       f.out.FreeTensor(t);
       t = f.out.AllocTensor<float>();  // the value of before may be lost
       PipeBarrier<PIPE_V>();
       Duplicate(t[8], 0.0f, 8);
       f.out.EnQue(t);
       t = f.out.DeQue<float>();
       DataCopy(f.y, t[8], 8);
       BREAKS DataCopy(f.y[8], t, 8);
     },
     {"DataCopy: writes bytes [32, 64) of 'y' from memory that was never written"},
     true},
    {"what was never written, by way of vector instructions",
     [](Fixture& f) {
       LocalTensor<float> t = f.calc.Get<float>();
       Duplicate(t, 1.0f, 8);
       PipeBarrier<PIPE_V>();
       Adds(t[64], t, 1.0f, 16);
       PipeBarrier<PIPE_V>();
       Mul(t[128], t[64], t, uint64_t{8}, 2, BinaryRepeatParams(1, 1, 1, 1, 1, 0));
       SetFlag<HardEvent::V_MTE3>(0);
       WaitFlag<HardEvent::V_MTE3>(0);
       DataCopy(f.y, t[128], 8);
       BREAKS DataCopy(f.y[8], t[136], 8);
     },
     {"DataCopy: writes bytes [32, 64) of 'y' from memory that was never written"},
     true},
    {"GetValue of what was never written",
     [](Fixture& f) { BREAKS f.calc.Get<float>().GetValue(4); },
     {"GetValue: reads bytes [16, 20) of VECCALC", "never written"},
     true},
    {"a sum over what was never written",
     [](Fixture& f) {
       TBuf<TPosition::VECCALC> work;
       f.pipe.InitBuffer(work, 32);
       LocalTensor<float> t = f.calc.Get<float>();
       Duplicate(t, 1.0f, 8);
       PipeBarrier<PIPE_V>();
       BREAKS ReduceSum<float>(t, t, work.Get<float>(), 9);
     },
     {"ReduceSum: reads bytes [32, 36) of VECCALC", "never written"},
     true},
    {"a sum over what DataCopyPad fills up",
     [](Fixture& f) {
       LocalTensor<float> t = f.in.AllocTensor<float>();
       DataCopyPad(t, f.x, DataCopyExtParams(2, 20, 0, 0, 0), DataCopyPadExtParams<float>());
       f.in.EnQue(t);
       t = f.in.DeQue<float>();
       WholeReduceSum<float>(f.calc.Get<float>(), t, 5, 2, 1, 1, 1);
       PipeBarrier<PIPE_V>();
       BREAKS WholeReduceSum<float>(f.calc.Get<float>(), t, 6, 2, 1, 1, 1);
     },
     {"WholeReduceSum: reads bytes [20, 24) of VECIN", "never written"},
     true},
    {"Matmul of global memory that was never written",
     [](Fixture& f) {
       using Gm = matmul::MatmulType<TPosition::GM, CubeFormat::ND, float>;
       matmul::Matmul<Gm, Gm, Gm> mm;
       mm.SetOrgShape(16, 16, 16);
       mm.SetSingleShape(16, 16, 16);
       mm.SetTensorA(f.y[512]);
       mm.SetTensorB(f.x);
       BREAKS mm.IterateAll(f.y);
     },
     {"IterateAll: reads bytes [2048, ", "of y, which were never written"},
     true},
    {"adds to global memory that was never written",
     [](Fixture& f) {
       LocalTensor<float> t = f.out.AllocTensor<float>();
       Duplicate(t, 1.0f, 256);
       f.out.EnQue(t);
       t = f.out.DeQue<float>();
       SetAtomicAdd<float>();
       BREAKS DataCopy(f.y, t, 8);
     },
     {"DataCopy: reads bytes [0, 32) of y, which were never written"},
     true},
    {"right: what was never written is computed with, but not used",
     [](Fixture& f) {
       LocalTensor<float> t = f.in.AllocTensor<float>();
       DataCopyPad(t, f.x, DataCopyExtParams(2, 20, 0, 0, 0), DataCopyPadExtParams<float>());
       f.in.EnQue(t);
       t = f.in.DeQue<float>();
       LocalTensor<float> u = f.out.AllocTensor<float>();
       Adds(u, t, 1.0f, 16);
       f.out.EnQue(u);
       u = f.out.DeQue<float>();
       DataCopyPad(f.y, u, DataCopyExtParams(2, 20, 0, 0, 0));
     },
     {},
     false},
    {"right: a scalar that waited orders what it issues",
     [](Fixture& f) {
       LocalTensor<float> t = f.calc.Get<float>();
       Duplicate(t, 1.0f, 256);
       SetFlag<HardEvent::V_S>(0);
       WaitFlag<HardEvent::V_S>(0);
       DataCopy(f.y, t, 256);
     },
     {},
     false},
};

void RunKernel(void* context, int /*core*/) {
  Fixture fixture;
  static_cast<const Case*>(context)->kernel(fixture);
}

// The text of the violation, or "" without one.
std::string Run(const Case& c) {
  const mst::GmBuffer buffers[] = {{"x", xData.data(), kFloats * 4, mst::GmRole::kInput},
                                   {"y", yData.data(), kFloats * 4, mst::GmRole::kOutput}};
  mst_launch_begin(mst::FindPlatform("ascend910b1"), buffers, 2);
  try {
    mst::LaunchKernel(c.cores, RunKernel, const_cast<Case*>(&c));
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

bool Check(const Case& c) {
  line = 0;
  const std::string text = Run(c);
  bool ok = text.empty() == c.fragments.empty();
  for (const char* fragment : c.fragments) ok = ok && text.find(fragment) != std::string::npos;
  if (c.hasLine) ok = ok && text.find("wrong_kernels.cpp:" + std::to_string(line)) != std::string::npos;
  if (!ok) std::printf("FAILED %s: '%s' (line %d)\n", c.name, text.c_str(), line);
  return ok;
}

}  // namespace

int main() {
  mst::SetPoolThreads(2);  // the cores of a case run at once
  int passed = 0, failed = 0;
  for (const Case& c : kCases) (Check(c) ? passed : failed) += 1;
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
