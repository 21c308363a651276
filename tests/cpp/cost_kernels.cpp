// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Kernels small enough to cost by hand. Prints the figures of the model, then for each kernel its name and the report
// on it, a line each; tests/test_cost.py knows what should come out.
#include <cstdio>
#include <vector>

#include "common/cpu_entry.h"
#include "kernel_operator.h"
#include "kernel_tiling/kernel_tiling.h"
#include "lib/matmul_intf.h"

extern "C" void mst_launch_begin(const mst::Platform* platform, const mst::GmBuffer* buffers, int count);
extern "C" void mst_cost_switch(int on);
extern "C" const char* mst_cost_report();
extern "C" const char* mst_cost_rates();

namespace {

using namespace AscendC;  // NOLINT: as in kernels

constexpr int kFloats = 1 << 16;
constexpr int kTile = 4096;  // floats: copies of 16 KB
constexpr int kTiles = 8;
constexpr int kSide = 128;  // of the matrices
std::vector<float> xData(kFloats, 1.0f), yData(kFloats, 0.0f);

GlobalTensor<float> Gm(std::vector<float>& data, int offset = 0) {
  GlobalTensor<float> gm;
  gm.SetGlobalBuffer(data.data() + offset);
  return gm;
}

// In and out tile by tile, through `buffers` buffers.
template <int buffers>
void CopyTiles() {
  TPipe pipe;
  TQueBind<TPosition::VECIN, TPosition::VECOUT, buffers> queue;
  pipe.InitBuffer(queue, buffers, kTile * sizeof(float));
  for (int i = 0; i < kTiles; ++i) {
    LocalTensor<float> tile = queue.template AllocTensor<float>();
    DataCopy(tile, Gm(xData, i * kTile), kTile);
    queue.EnQue(tile);
    tile = queue.template DeQue<float>();
    DataCopy(Gm(yData, i * kTile), tile, kTile);
    queue.FreeTensor(tile);
  }
}

// 32 rows of 64 bytes, one in every kilobyte, and again.
void CopyRowsTwice() {
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, 2 * 2048);
  for (int i = 0; i < 2; ++i) {
    DataCopy(buffer.Get<float>()[i * 512], Gm(xData), DataCopyParams(32, 2, 30, 0));
  }
}

// Three instructions of 1024 floats each, which wait for each other or do not.
template <bool waits>
void VectorChain() {
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, 3 * 4096);
  LocalTensor<float> t = buffer.Get<float>();
  for (int i = 0; i < 3; ++i) {
    Duplicate(t[i * 1024], 1.0f, 1024);
    if (waits) PipeBarrier<PIPE_V>();
  }
}

// A strip of a vector's work after a product, which it waits for first or last.
enum class Wait { kFirst, kLast };
template <Wait wait>
void Product() {
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, 65536);
  TCubeTiling tiling;
  tiling.M = tiling.singleCoreM = tiling.N = tiling.singleCoreN = tiling.Ka = tiling.Kb = tiling.singleCoreK = kSide;
  tiling.baseM = tiling.baseN = tiling.baseK = kSide;
  tiling.depthA1 = tiling.depthB1 = tiling.stepKa = tiling.stepKb = tiling.dbL0A = tiling.dbL0B = tiling.dbL0C = 1;
  using Operand = MatmulType<TPosition::GM, CubeFormat::ND, float>;
  Matmul<Operand, Operand, Operand> matmul;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), matmul, &tiling);
  matmul.SetTensorA(Gm(xData));
  matmul.SetTensorB(Gm(xData, kSide * kSide));
  const auto out = Gm(yData, static_cast<int>(GetBlockIdx()) * kSide * kSide);
  if (wait == Wait::kFirst) {
    matmul.IterateAll(out);
  } else {
    matmul.IterateAll<false>(out);
  }
  Duplicate(buffer.Get<float>(), 1.0f, 16384);
  if (wait == Wait::kLast) matmul.WaitIterateAll();
}

// Core 0 comes late.
void MeetAll() {
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, 4096);
  if (GetBlockIdx() == 0) Duplicate(buffer.Get<float>(), 1.0f, 1024);
  SyncAll();
  Duplicate(buffer.Get<float>(), 1.0f, 1024);
}

struct Case {
  const char* name;
  void (*kernel)();
  int cores;
};
constexpr Case kCases[] = {{"one buffer", CopyTiles<1>, 1},
                           {"two buffers", CopyTiles<2>, 1},
                           {"rows twice", CopyRowsTwice, 1},
                           {"vector", VectorChain<false>, 1},
                           {"vector waits", VectorChain<true>, 1},
                           {"product", Product<Wait::kFirst>, 1},
                           {"product ahead", Product<Wait::kLast>, 1},
                           {"products of a pair", Product<Wait::kFirst>, 2},
                           {"products of two pairs", Product<Wait::kFirst>, 4},
                           {"meeting", MeetAll, 2}};

void RunCase(void* context, int /*core*/) { static_cast<const Case*>(context)->kernel(); }

}  // namespace

int main() {
  mst::SetPoolThreads(2);
  mst_cost_switch(1);
  std::printf("%s\n", mst_cost_rates());
  const mst::GmBuffer buffers[] = {{"x", xData.data(), kFloats * 4, mst::GmRole::kInput},
                                   {"y", yData.data(), kFloats * 4, mst::GmRole::kOutput}};
  for (const Case& c : kCases) {
    mst_launch_begin(mst::FindPlatform("ascend910b1"), buffers, 2);
    mst::LaunchKernel(c.cores, RunCase, const_cast<Case*>(&c));
    std::printf("%s: %s\n", c.name, mst_cost_report());
  }
  return 0;
}
