// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Wrong kernels that break a limit: of an instruction, a buffer, a queue or a flag.
#include "kernel_tiling/kernel_tiling.h"
#include "lib/matmul_intf.h"
#include "wrong_kernels.h"

namespace wrong {

using namespace AscendC;  // NOLINT: as in kernels

const std::vector<Case> kLimits = {
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
    {"compare of a part of a repeat",
     [](Fixture& f) {
       LocalTensor<float> t = f.calc.Get<float>();
       BREAKS CompareScalar(t[128].ReinterpretCast<uint8_t>(), t, 0.0f, CMPMODE::EQ, uint32_t{96});
     },
     {"CompareScalar", "count must fill whole repeats of 256 bytes, but 96 elements have 384"},
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
    {"L1 too small for two vector cores",
     [](Fixture& f) {
       using Gm = matmul::MatmulType<TPosition::GM, CubeFormat::ND, float>;
       using L1 = matmul::MatmulType<TPosition::TSCM, CubeFormat::NZ, float>;
       matmul::Matmul<Gm, L1, Gm> mm;
       TCubeTiling tiling = {};
       tiling.depthA1 = 2;
       tiling.baseM = tiling.baseK = 64;
       mm.Init(&tiling, &f.pipe);
       TSCM<TPosition::GM, 1> operand, more;
       f.pipe.InitBuffer(operand, 1, 239 * 1024);
       BREAKS f.pipe.InitBuffer(more, 1, 1024);
     },
     {"InitBuffer", "once for each vector core, of 2048 bytes makes 524288", "L1", "ascend910b1"},
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
    {"writes an input",
     [](Fixture& f) {
       LocalTensor<float> t = f.out.AllocTensor<float>();
       BREAKS DataCopy(f.x, t, 8);
     },
     {"DataCopy", "writes the input 'x'"},
     true},
    {"basic block of softmax",
     [](Fixture& f) {
       LocalTensor<float> t = f.calc.Get<float>();
       SoftmaxFlashV2<float, false, false, true>(t, t, t, t, t, t, t, SoftMaxTiling{}, SoftMaxShapeInfo{2, 64, 2, 64});
     },
     {"SoftmaxFlashV2", "multiple of 8 rows and of 64 columns"},
     false},
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
};

}  // namespace wrong
