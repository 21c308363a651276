// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Wrong kernels that do not wait for what they use, on one core and between two.
#include "kernel_tiling/kernel_tiling.h"
#include "lib/matmul_intf.h"
#include "wrong_kernels.h"

namespace wrong {

using namespace AscendC;  // NOLINT: as in kernels

const std::vector<Case> kOrder = {
    {"copy in, then vector",
     [](Fixture& f) {
       LocalTensor<float> t = f.calc.Get<float>();
       DataCopy(t, f.x, 256);
       BREAKS Adds(f.out.AllocTensor<float>(), t, 1.0f, 256);
     },
     {"Adds: reads bytes [0, 1024) of VECCALC", "DataCopy (MTE2, wrong_kernels_order.cpp", "write",
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
    {"wait for another Matmul",
     [](Fixture& f) {
       using Gm = matmul::MatmulType<TPosition::GM, CubeFormat::ND, float>;
       matmul::Matmul<Gm, Gm, Gm> mm[2];
       for (int i = 0; i < 2; ++i) {
         mm[i].SetOrgShape(16, 16, 16);
         mm[i].SetSingleShape(16, 16, 16);
         mm[i].SetTensorA(f.x);
         mm[i].SetTensorB(f.x);
         mm[i].IterateAll<false>(f.y[i * 256]);
       }
       mm[0].WaitIterateAll();
       LocalTensor<float> t = f.in.AllocTensor<float>();
       DataCopy(t, f.y, 256);
       BREAKS DataCopy(f.in.AllocTensor<float>(), f.y[256], 8);
     },
     {"DataCopy: reads bytes [1024, 1056) of y", "IterateAll (M,", "the Matmul is not waited for"},
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
    {"two cores write the same bytes",
     [](Fixture& f) {
       LocalTensor<float> t = f.out.AllocTensor<float>();
       Duplicate(t, 1.0f, 256);
       f.out.EnQue(t);
       t = f.out.DeQue<float>();
       DataCopy(f.y[GetBlockIdx() * 248], t, 256);
       f.out.FreeTensor(t);
     },
     {"DataCopy", "writes bytes [992, 1024) of 'y'", "no SyncAll, and no flag between cores, orders them"},
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
     {"of 'y'", "reads", "writes", "no SyncAll, and no flag between cores, orders them"},
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

}  // namespace wrong
