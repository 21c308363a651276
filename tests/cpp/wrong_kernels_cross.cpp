// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Wrong kernels of cube and vector cores in groups, and of flags between cores.
#include "kernel_tiling/kernel_tiling.h"
#include "lib/matmul_intf.h"
#include "wrong_kernels.h"

namespace wrong {

using namespace AscendC;  // NOLINT: as in kernels

namespace {

// 256 floats of y, by the vector unit and MTE3.
void Write(Fixture& f, int64_t at) {
  LocalTensor<float> t = f.out.AllocTensor<float>();
  Duplicate(t, 1.0f, 256);
  f.out.EnQue(t);
  t = f.out.DeQue<float>();
  DataCopy(f.y[at], t, 256);
  f.out.FreeTensor(t);
}

// They are added up and must have values.
void Read(Fixture& f, int64_t at) {
  LocalTensor<float> t = f.in.AllocTensor<float>();
  DataCopy(t, f.y[at], 256);
  f.in.EnQue(t);
  t = f.in.DeQue<float>();
  ReduceSum(t, t, f.calc.Get<float>(), 256);
  f.in.FreeTensor(t);
}

// The cube core's: y[0, 256) = x * `a`, all of 16 x 16.
template <bool sync = true>
void Multiply(Fixture& f, const GlobalTensor<float>& a) {
  using Gm = matmul::MatmulType<TPosition::GM, CubeFormat::ND, float>;
  matmul::Matmul<Gm, Gm, Gm> mm;
  mm.SetOrgShape(16, 16, 16);
  mm.SetSingleShape(16, 16, 16);
  mm.SetTensorA(a);
  mm.SetTensorB(f.x);
  mm.IterateAll<sync>(f.y);
}

}  // namespace

const std::vector<Case> kCross = {
    {"right: a vector core's copies, for the others",
     [](Fixture& f) {
       if (GetBlockIdx() == 0) Write(f, 0);
       CrossCoreSetFlag<0, PIPE_MTE3>(0);
       CrossCoreWaitFlag(0);
       if (GetBlockIdx() > 0) Read(f, 0);
     },
     {},
     false,
     4},
    {"a flag on a pipe that did not write",
     [](Fixture& f) {
       if (GetBlockIdx() == 0) Write(f, 0);
       CrossCoreSetFlag<0, PIPE_V>(0);
       CrossCoreWaitFlag(0);
       if (GetBlockIdx() == 1) {
         LocalTensor<float> t = f.in.AllocTensor<float>();
         DataCopy(t, f.y, 256);
         f.in.FreeTensor(t);
       }
     },
     {"DataCopy (wrong_kernels_cross.cpp", "reads", "writes", "of 'y'", "no flag between cores"},
     false,
     2},
    {"values that a flag on a pipe that did not write does not promise",
     [](Fixture& f) {
       if (GetBlockIdx() == 0) Write(f, 0);
       CrossCoreSetFlag<0, PIPE_V>(0);
       CrossCoreWaitFlag(0);
       if (GetBlockIdx() == 1) Read(f, 0);
     },
     {"ReduceSum: reads", "never written"},
     false,
     2},
    {"right: an event leads to the flag's pipe",
     [](Fixture& f) {
       if (GetBlockIdx() == 0) Write(f, 0);
       SetFlag<HardEvent::MTE3_V>(0);
       WaitFlag<HardEvent::MTE3_V>(0);
       CrossCoreSetFlag<0, PIPE_V>(0);
       CrossCoreWaitFlag(0);
       if (GetBlockIdx() == 1) Read(f, 0);
     },
     {},
     false,
     2},
    {"no flag for what was read",
     [](Fixture& f) {
       if (GetBlockIdx() == 0) Write(f, 0);
       CrossCoreSetFlag<0, PIPE_MTE3>(0);
       CrossCoreWaitFlag(0);
       if (GetBlockIdx() == 1) Read(f, 0);
       CrossCoreSetFlag<0, PIPE_MTE3>(1);
       CrossCoreWaitFlag(1);
       if (GetBlockIdx() == 0) Write(f, 0);
     },
     {"DataCopy", "reads", "writes", "of 'y'", "no flag between cores"},
     false,
     2},
    {"right: a flag for what was read",
     [](Fixture& f) {
       if (GetBlockIdx() == 0) Write(f, 0);
       CrossCoreSetFlag<0, PIPE_MTE3>(0);
       CrossCoreWaitFlag(0);
       if (GetBlockIdx() == 1) Read(f, 0);
       CrossCoreSetFlag<0, PIPE_MTE2>(1);
       CrossCoreWaitFlag(1);
       if (GetBlockIdx() == 0) Write(f, 0);
     },
     {},
     false,
     2},
    {"writes after the flag",
     [](Fixture& f) {
       CrossCoreSetFlag<0, PIPE_MTE3>(0);
       if (GetBlockIdx() == 0) Write(f, 0);
       CrossCoreWaitFlag(0);
       if (GetBlockIdx() == 1) Write(f, 192);
     },
     {"DataCopy", "bytes [768, 1024) of 'y'", "no flag between cores"},
     false,
     2},
    {"right: the vector cores of a group",
     [](Fixture& f) {
       if ASCEND_IS_AIC
         return;
       const int64_t half = GetSubBlockIdx();
       if (GetBlockIdx() >= 2) return;
       Write(f, half * 256);
       CrossCoreSetFlag<1, PIPE_MTE3>(10);
       CrossCoreWaitFlag(10);
       Read(f, 256 - half * 256);
     },
     {},
     false,
     2,
     true},
    {"mode 1 orders the cores of a group, not the groups",
     [](Fixture& f) {
       if ASCEND_IS_AIC
         return;
       if (GetBlockIdx() == 0) Write(f, 0);
       CrossCoreSetFlag<1, PIPE_MTE3>(10);
       CrossCoreWaitFlag(10);
       if (GetBlockIdx() == 2) Write(f, 0);
     },
     {"DataCopy", "bytes [0, 1024) of 'y'", "of vector core", "no flag between cores"},
     false,
     2,
     true},
    {"right: a chain of flags over a third core",
     [](Fixture& f) {
       if ASCEND_IS_AIC {
         CrossCoreWaitFlag(0);
         CrossCoreSetFlag<2, PIPE_MTE2>(1);
       } else {
         if (GetBlockIdx() == 0) Write(f, 0);
         CrossCoreSetFlag<2, PIPE_MTE3>(0);
         CrossCoreWaitFlag(1);
         if (GetBlockIdx() == 1) Read(f, 0);
       }
     },
     {},
     false,
     1,
     true},
    {"right: cube and vector cores in turn",
     [](Fixture& f) {
       for (int round = 0; round < 20; ++round) {
         if ASCEND_IS_AIC {
           if (round > 0) CrossCoreWaitFlag(4);
           Multiply<false>(f, round == 0 ? f.x : f.y[512]);
           CrossCoreSetFlag<2, PIPE_FIX>(3);
         }
         if ASCEND_IS_AIV {
           CrossCoreWaitFlag(3);
           LocalTensor<float> t = f.in.AllocTensor<float>();
           DataCopy(t, f.y[GetSubBlockIdx() * 128], 128);
           f.in.EnQue(t);
           t = f.in.DeQue<float>();
           LocalTensor<float> u = f.out.AllocTensor<float>();
           Muls(u, t, 0.0625f, 128);
           f.in.FreeTensor(t);
           f.out.EnQue(u);
           u = f.out.DeQue<float>();
           DataCopy(f.y[512 + GetSubBlockIdx() * 128], u, 128);
           f.out.FreeTensor(u);
           if (round < 19) CrossCoreSetFlag<2, PIPE_MTE3>(4);
         }
       }
     },
     {},
     false,
     1,
     true},
    {"the cube core does not wait for its Matmul",
     [](Fixture& f) {
       if ASCEND_IS_AIC {
         Multiply<false>(f, f.x);
         CrossCoreSetFlag<2, PIPE_MTE2>(3);
       } else {
         CrossCoreWaitFlag(3);
         LocalTensor<float> t = f.in.AllocTensor<float>();
         DataCopy(t, f.y, 8);
         f.in.FreeTensor(t);
       }
     },
     {"DataCopy", "IterateAll", "bytes [0, 32) of 'y'", "cube core 0", "no flag between cores"},
     false,
     1,
     true},
    {"SyncAll of vector cores does not wait for the cube core",
     [](Fixture& f) {
       if ASCEND_IS_AIC {
         Multiply(f, f.x);
       } else {
         SyncAll();
         LocalTensor<float> t = f.in.AllocTensor<float>();
         DataCopy(t, f.y, 8);
         f.in.FreeTensor(t);
       }
     },
     {"DataCopy", "IterateAll", "bytes [0, 32) of 'y'", "cube core 0", "no SyncAll"},
     false,
     1,
     true},
    {"right: SyncAll of all cores",
     [](Fixture& f) {
       if ASCEND_IS_AIC
         Multiply(f, f.x);
       SyncAll<false>();
       if ASCEND_IS_AIV
         Read(f, 0);
     },
     {},
     false,
     1,
     true},
    {"a 16th flag",
     [](Fixture&) {
       if ASCEND_IS_AIC {
         for (int i = 0; i < 15; ++i) CrossCoreSetFlag<2, PIPE_FIX>(2);
         BREAKS CrossCoreSetFlag<2, PIPE_FIX>(2);
       } else {
         for (int i = 0; i < 16; ++i) CrossCoreWaitFlag(2);
       }
     },
     {"CrossCoreSetFlag: flag 2 of vector core 0 may be set more than 15 times at once", "cube core 0"},
     true,
     1,
     true},
    {"a 16th flag of all cores, of which one waits in time",
     [](Fixture&) {
       for (int i = 0; i < 16; ++i) {
         CrossCoreSetFlag<0, PIPE_MTE3>(2);
         if (GetBlockIdx() == 0) CrossCoreWaitFlag(2);
       }
       for (int i = 0; GetBlockIdx() > 0 && i < 16; ++i) CrossCoreWaitFlag(2);
     },
     {"CrossCoreSetFlag: flag 2 of core 1 may be set more than 15 times at once", "(core 1,"},
     false,
     2},
    {"right: a 16th flag after a wait that it knows of",
     [](Fixture&) {
       if ASCEND_IS_AIC {
         for (int i = 0; i < 15; ++i) CrossCoreSetFlag<2, PIPE_FIX>(2);
         CrossCoreWaitFlag(3);
         CrossCoreSetFlag<2, PIPE_FIX>(2);
       } else {
         CrossCoreWaitFlag(2);
         CrossCoreSetFlag<2, PIPE_MTE2>(3);
         for (int i = 0; i < 15; ++i) CrossCoreWaitFlag(2);
       }
     },
     {},
     false,
     1,
     true},
    {"a wait without a flag",
     [](Fixture&) {
       if ASCEND_IS_AIC {
         BREAKS CrossCoreWaitFlag(2);
       } else if (GetSubBlockIdx() == 0) {
         CrossCoreSetFlag<2, PIPE_MTE3>(2);
       }
     },
     {"CrossCoreWaitFlag: flag 2 is never set: all other cores have ended or wait", "cube core 0"},
     true,
     1,
     true},
    {"a flag that nobody waits for",
     [](Fixture&) {
       if ASCEND_IS_AIC
         CrossCoreSetFlag<2, PIPE_FIX>(2);
       if (GetSubBlockNum() == 2 && GetSubBlockIdx() == 1) CrossCoreWaitFlag(2);
     },
     {"CrossCoreSetFlag: flag 2 of vector core 0 is still set at the end"},
     false,
     1,
     true},
    {"a flag of SyncAll",
     [](Fixture&) {
       BREAKS CrossCoreSetFlag<0, PIPE_MTE3>(11);
       CrossCoreWaitFlag(11);
     },
     {"CrossCoreSetFlag: flag id must be from 0 to 10, but is 11"},
     true},
    {"vector unit of a cube core",
     [](Fixture& f) {
       if ASCEND_IS_AIV
         return;
       BREAKS Duplicate(f.calc.Get<float>(), 1.0f, 256);
     },
     {"Duplicate: is for pipe V, which a cube core lacks", "cube core 0"},
     true,
     1,
     true},
    {"MTE3 of a cube core",
     [](Fixture& f) {
       if ASCEND_IS_AIV
         return;
       LocalTensor<float> t = f.calc.Get<float>();
       DataCopy(t, f.x, 256);
       SetFlag<HardEvent::MTE2_MTE3>(0);
       WaitFlag<HardEvent::MTE2_MTE3>(0);
       BREAKS DataCopy(f.y, t, 256);
     },
     {"DataCopy: is for pipe MTE3, which a cube core lacks"},
     true,
     1,
     true},
    {"a flag on the vector unit of a cube core",
     [](Fixture&) {
       if ASCEND_IS_AIV {
         CrossCoreWaitFlag(0);
       } else {
         BREAKS CrossCoreSetFlag<2, PIPE_V>(0);
       }
     },
     {"CrossCoreSetFlag: is for pipe V, which a cube core lacks"},
     true,
     1,
     true},
    {"Matmul of a vector core whose cube core runs the kernel itself",
     [](Fixture& f) {
       if ASCEND_IS_AIC
         return;
       if (GetBlockIdx() > 0) return;
       Multiply(f, f.x);
     },
     {"IterateAll: is for the cube, which a vector core lacks", "vector core 0"},
     false,
     1,
     true},
};

}  // namespace wrong
