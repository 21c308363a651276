// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Wrong kernels that use what was never written.
#include "kernel_tiling/kernel_tiling.h"
#include "lib/matmul_intf.h"
#include "wrong_kernels.h"

namespace wrong {

using namespace AscendC;  // NOLINT: as in kernels

const std::vector<Case> kValues = {
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
};

}  // namespace wrong
