// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Where the checked build sees what a kernel does. In the fast build everything here is empty and costs nothing.
//
// Every instruction hands its operands and its work to one of the functions below; both builds do the work at once,
// the checked build looks at the operands first.
#ifndef MST_TWIN_CHECK_H_
#define MST_TWIN_CHECK_H_

#include "runtime.h"
#include "types.h"

#ifdef MST_TWIN_CHECKED
#include "checked/check.h"
#else

namespace AscendC {
namespace check {

// How many elements or repeats an instruction covers.
struct Range {};
inline Range Count(int64_t /*count*/) { return {}; }
inline Range Masked(uint64_t /*mask*/, int /*repeat*/) { return {}; }
inline Range Masked(const uint64_t* /*mask*/, int /*repeat*/) { return {}; }

// One operand: a tensor and how the instruction walks it, strides in 32-byte blocks within and between repeats.
struct Operand {};
template <typename Tensor>
inline Operand In(const Tensor& /*tensor*/, int64_t /*blkStride*/ = 1, int64_t /*repStride*/ = 8) {
  return {};
}
template <typename Tensor>
inline Operand Out(const Tensor& /*tensor*/, int64_t /*blkStride*/ = 1, int64_t /*repStride*/ = 8) {
  return {};
}
// An operand of `elements` elements in one run, whatever the range of the instruction is.
template <typename Tensor>
inline Operand InRun(const Tensor& /*tensor*/, int64_t /*elements*/) {
  return {};
}
template <typename Tensor>
inline Operand OutRun(const Tensor& /*tensor*/, int64_t /*elements*/) {
  return {};
}
// An operand of a copy: `blocks` runs of `bytes` bytes, `gapBytes` between the end of one and the start of the next.
template <typename Tensor>
inline Operand InBlocks(const Tensor& /*tensor*/, int64_t /*blocks*/, int64_t /*bytes*/, int64_t /*gapBytes*/) {
  return {};
}
template <typename Tensor>
inline Operand OutBlocks(const Tensor& /*tensor*/, int64_t /*blocks*/, int64_t /*bytes*/, int64_t /*gapBytes*/) {
  return {};
}

// An operand in global memory that the instruction adds to instead of overwriting it.
inline Operand AddingIf(bool /*adds*/, Operand operand) { return operand; }

// An operand of which the last `bytes` of each run get no value, although they are written.
inline Operand Tail(int64_t /*bytes*/, Operand operand) { return operand; }

// An instruction of `pipe`: `work` does it.
template <typename Work, typename... Operands>
inline void Issue(pipe_t /*pipe*/, const char* /*name*/, const Range& /*range*/, const Work& work,
                  const Operands&... /*operands*/) {
  work();
}

// A function of the vector unit keeps something in `tensor`, all of which is lost.
template <typename Tensor>
inline void Scratch(const char* /*name*/, const Tensor& /*tensor*/) {}

// The scalar unit reads or writes one element.
template <typename Tensor>
inline void ScalarRead(const Tensor& /*tensor*/, uint64_t /*offset*/) {}
template <typename Tensor>
inline void ScalarWrite(const Tensor& /*tensor*/, uint64_t /*offset*/) {}

inline void SetFlag(HardEvent /*event*/, int32_t /*id*/) {}
inline void WaitFlag(HardEvent /*event*/, int32_t /*id*/) {}
inline void Barrier(pipe_t /*pipe*/) {}

// Flags between cores and SyncAll: what a core tells the others, and what it hears of them.
inline mst::Knowledge BeforeCrossCoreSet(int /*mode*/, pipe_t /*pipe*/, int /*id*/) { return {}; }
inline void BeforeCrossCoreWait(int /*id*/) {}
[[noreturn]] inline void CrossCoreWaitFails(int /*id*/) {
  mst::KernelError("CrossCoreWaitFlag: the flag is never set, since all other cores have ended or wait");
}
inline void AfterCrossCoreWait(int /*id*/, const mst::Knowledge& /*known*/) {}
inline mst::Knowledge BeforeSyncAll() { return {}; }
inline void AfterSyncAll(const mst::Knowledge& /*known*/) {}

// A Matmul object, its tiling and what its next IterateAll multiplies; nothing stands for the object but its address.
// `l1Bytes`: of its operands that come from elsewhere.
template <typename Tiling>
inline void NewMatmul(const void* /*matmul*/, const Tiling& /*tiling*/, int64_t /*l1Bytes*/) {}
inline void BeginMatmul(const void* /*matmul*/, int32_t /*m*/, int32_t /*n*/, int32_t /*k*/) {}
inline void EndMatmul(const void* /*matmul*/) {}
inline void WaitMatmul(const void* /*matmul*/) {}

// Buffers of a TPipe, and the queue that owns them; a TBuf has none.
inline void PipeBegin() {}
inline void PipeEnd() {}
inline void NewBuffer(const void* /*queue*/, TPosition /*position*/, uint8_t* /*base*/, uint32_t /*bytes*/) {}
// `src` and `dst`: which pipes an event of the queue orders.
inline void QueueAlloc(const void* /*buffer*/, TPosition /*src*/, TPosition /*dst*/) {}
inline void QueueEnQue(const void* /*buffer*/, TPosition /*src*/, TPosition /*dst*/) {}
inline void QueueDeQue(const void* /*buffer*/, TPosition /*src*/, TPosition /*dst*/) {}
inline void QueueFree(const void* /*buffer*/, TPosition /*src*/, TPosition /*dst*/) {}

}  // namespace check
}  // namespace AscendC

#endif  // MST_TWIN_CHECKED

#endif  // MST_TWIN_CHECK_H_
