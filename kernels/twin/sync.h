// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Core numbers, flags and barriers. A twin core runs its instructions in order, so the flags and barriers of its pipes
// only matter to the checked build.
#ifndef MST_TWIN_SYNC_H_
#define MST_TWIN_SYNC_H_

#include "check.h"
#include "runtime.h"
#include "tensor.h"
#include "vector.h"

// The kind of core. Without groups a twin core is a vector core, which its Matmul objects serve themselves.
#define ASCEND_IS_AIV (!mst::ThisCore().isCube)
#define ASCEND_IS_AIC (mst::ThisCore().isCube)

namespace AscendC {

inline int64_t GetBlockNum() { return mst::ThisCore().blockNum; }
inline int64_t GetBlockIdx() { return mst::ThisCore().blockIdx; }
inline int64_t GetSubBlockIdx() { return mst::ThisCore().subBlockIdx; }
inline int64_t GetSubBlockNum() { return mst::ThisCore().subBlockNum; }

template <HardEvent event>
inline void SetFlag(int32_t eventID) {
  check::SetFlag(event, eventID);
}

template <HardEvent event>
inline void WaitFlag(int32_t eventID) {
  check::WaitFlag(event, eventID);
}

template <pipe_t pipe>
inline void PipeBarrier() {
  check::Barrier(pipe);
}

// Flags between cores: of all cores of a kind (mode 0), of the two vector cores of a group (1), of a group's cube core
// and its two vector cores (2). What `pipe` has done is done when the flag is set.
template <uint8_t modeId, pipe_t pipe>
inline void CrossCoreSetFlag(uint16_t flagId) {
  static_assert(modeId <= 2, "the 910B has modes 0, 1 and 2");
  static_assert(pipe != PIPE_S && pipe != PIPE_ALL, "the scalar unit sets no flag between cores");
  const mst::Knowledge known = check::BeforeCrossCoreSet(modeId, pipe, flagId);
  detail::StreamFence();
  mst::SetCrossCoreFlag(modeId, flagId, known);
}

// The 910B holds up all pipes, whatever the template's arguments are.
template <uint8_t modeId = 0, pipe_t pipe = PIPE_S>
inline void CrossCoreWaitFlag(uint16_t flagId) {
  check::BeforeCrossCoreWait(flagId);
  mst::Knowledge known;
  if (!mst::WaitCrossCoreFlag(flagId, &known)) check::CrossCoreWaitFails(flagId);
  check::AfterCrossCoreWait(flagId, known);
}

template <bool isAIVOnly = true>
inline void SyncAll() {
  const mst::Knowledge known = check::BeforeSyncAll();
  detail::StreamFence();
  check::AfterSyncAll(mst::SyncAllCores(isAIVOnly, known));
}

template <bool isAIVOnly = true>
inline void SyncAll(const GlobalTensor<int32_t>& /*gmWorkspace*/, const LocalTensor<int32_t>& /*ubWorkspace*/,
                    const int32_t /*usedCores*/ = 0) {
  SyncAll<isAIVOnly>();
}

// DataCopy and DataCopyPad from local to global memory add instead of writing.
template <typename T>
inline void SetAtomicAdd() {
  static_assert(std::is_same_v<T, float>, "the twin adds float only");
  mst::ThisCore().atomicAdd = true;
}

inline void SetAtomicNone() { mst::ThisCore().atomicAdd = false; }

}  // namespace AscendC

#endif  // MST_TWIN_SYNC_H_
