// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// The checks of ../check.h in the checked build. An instruction is inspected before its work is done, at once and in
// program order: what the card might do in another order is found by looking at what the kernel has synchronised, not
// by doing it. A violation throws, naming the instruction, the buffer, the rule and the line of the kernel.
#ifndef MST_TWIN_CHECKED_CHECK_H_
#define MST_TWIN_CHECKED_CHECK_H_

#include "inside.h"
#include "kernel_tiling/kernel_tiling.h"
#include "runtime.h"

namespace AscendC {
namespace check {

struct Range {
  int64_t count;         // elements in one run; -1: strided
  int repeat;            // of a strided instruction
  int64_t lastLane;      // the last lane of a repeat that takes part; -1: none does
  const uint64_t* bits;  // the lanes of a repeat that take part; nullptr: all up to lastLane
};
Range Count(int64_t count);
Range Masked(uint64_t mask, int repeat);
Range Masked(const uint64_t* mask, int repeat);

struct Operand {
  enum class Walk { kStrided, kRun, kBlocks };

  uint64_t address;
  const void* buffer;  // start of the local allocation; nullptr: global memory
  int elementBytes;
  bool writes;
  bool adds;     // to global memory
  int64_t tail;  // bytes at the end of each run that are written, but get no value
  Walk walk;
  int64_t blk;  // kStrided: 32-byte blocks between blocks, and between repeats
  int64_t rep;
  int64_t elements;  // kRun
  int64_t blocks;    // kBlocks: runs of `bytes` bytes, `gapBytes` apart
  int64_t bytes;
  int64_t gapBytes;
};

namespace detail {

template <typename T>
const void* BufferOf(const LocalTensor<T>& tensor) {
  return AscendC::detail::Inside::Buffer(tensor);
}
template <typename T>
const void* BufferOf(const GlobalTensor<T>& /*tensor*/) {
  return nullptr;
}
template <typename Tensor>
Operand Describe(const Tensor& tensor, bool writes, Operand::Walk walk) {
  Operand operand{};
  operand.address = reinterpret_cast<uint64_t>(tensor.GetPhyAddr());
  operand.buffer = BufferOf(tensor);
  operand.elementBytes = sizeof(typename Tensor::PrimType);
  operand.writes = writes;
  operand.walk = walk;
  return operand;
}
template <typename Tensor>
Operand Strided(const Tensor& tensor, bool writes, int64_t blk, int64_t rep) {
  Operand operand = Describe(tensor, writes, Operand::Walk::kStrided);
  operand.blk = blk;
  operand.rep = rep;
  return operand;
}
template <typename Tensor>
Operand Run(const Tensor& tensor, bool writes, int64_t elements) {
  Operand operand = Describe(tensor, writes, Operand::Walk::kRun);
  operand.elements = elements;
  return operand;
}
template <typename Tensor>
Operand Blocks(const Tensor& tensor, bool writes, int64_t blocks, int64_t bytes, int64_t gapBytes) {
  Operand operand = Describe(tensor, writes, Operand::Walk::kBlocks);
  operand.blocks = blocks;
  operand.bytes = bytes;
  operand.gapBytes = gapBytes;
  return operand;
}

void Inspect(pipe_t pipe, const char* name, const Range& range, const Operand* operands, int count);
void InspectScalar(const char* name, const Operand& operand);

}  // namespace detail

template <typename Tensor>
Operand In(const Tensor& tensor, int64_t blkStride = 1, int64_t repStride = 8) {
  return detail::Strided(tensor, false, blkStride, repStride);
}
template <typename Tensor>
Operand Out(const Tensor& tensor, int64_t blkStride = 1, int64_t repStride = 8) {
  return detail::Strided(tensor, true, blkStride, repStride);
}
template <typename Tensor>
Operand InRun(const Tensor& tensor, int64_t elements) {
  return detail::Run(tensor, false, elements);
}
template <typename Tensor>
Operand OutRun(const Tensor& tensor, int64_t elements) {
  return detail::Run(tensor, true, elements);
}
template <typename Tensor>
Operand InBlocks(const Tensor& tensor, int64_t blocks, int64_t bytes, int64_t gapBytes) {
  return detail::Blocks(tensor, false, blocks, bytes, gapBytes);
}
template <typename Tensor>
Operand OutBlocks(const Tensor& tensor, int64_t blocks, int64_t bytes, int64_t gapBytes) {
  return detail::Blocks(tensor, true, blocks, bytes, gapBytes);
}

inline Operand AddingIf(bool adds, Operand operand) {
  operand.adds = adds;
  return operand;
}

inline Operand Tail(int64_t bytes, Operand operand) {
  operand.tail = bytes;
  return operand;
}

template <typename Work, typename... Operands>
void Issue(pipe_t pipe, const char* name, const Range& range, const Work& work, const Operands&... operands) {
  const Operand list[] = {operands...};
  detail::Inspect(pipe, name, range, list, sizeof...(operands));
  work();
}

template <typename Tensor>
void Scratch(const char* name, const Tensor& tensor) {
  const Operand operand = OutRun(tensor, tensor.GetSize());
  Issue(PIPE_V, name, Count(0), [] {}, Tail(operand.elements * operand.elementBytes, operand));
}

template <typename Tensor>
void ScalarRead(const Tensor& tensor, uint64_t offset) {
  Operand operand = detail::Run(tensor, false, 1);
  operand.address += offset * operand.elementBytes;
  detail::InspectScalar("GetValue", operand);
}
template <typename Tensor>
void ScalarWrite(const Tensor& tensor, uint64_t offset) {
  Operand operand = detail::Run(tensor, true, 1);
  operand.address += offset * operand.elementBytes;
  detail::InspectScalar("SetValue", operand);
}

void SetFlag(HardEvent event, int32_t id);
void WaitFlag(HardEvent event, int32_t id);
void Barrier(pipe_t pipe);

mst::Knowledge BeforeCrossCoreSet(int mode, pipe_t pipe, int id);
void BeforeCrossCoreWait(int id);
[[noreturn]] void CrossCoreWaitFails(int id);
void AfterCrossCoreWait(int id, const mst::Knowledge& known);
mst::Knowledge BeforeSyncAll();
void AfterSyncAll(const mst::Knowledge& known);

void NewMatmul(const void* matmul, const TCubeTiling& tiling, int64_t l1Bytes);
void BeginMatmul(const void* matmul, int32_t m, int32_t n, int32_t k);
void EndMatmul(const void* matmul);
void WaitMatmul(const void* matmul);

void PipeBegin();
void PipeEnd();
void NewBuffer(const void* queue, TPosition position, uint8_t* base, uint32_t bytes);
void QueueAlloc(const void* buffer, TPosition src, TPosition dst);
void QueueEnQue(const void* buffer, TPosition src, TPosition dst);
void QueueDeQue(const void* buffer, TPosition src, TPosition dst);
void QueueFree(const void* buffer, TPosition src, TPosition dst);

}  // namespace check
}  // namespace AscendC

#endif  // MST_TWIN_CHECKED_CHECK_H_
