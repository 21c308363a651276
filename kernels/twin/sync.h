// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Core numbers, flags and barriers. A twin core runs its instructions in order, so flags and pipe barriers only matter
// to the checked build.
#ifndef MST_TWIN_SYNC_H_
#define MST_TWIN_SYNC_H_

#include "check.h"
#include "runtime.h"
#include "tensor.h"
#include "vector.h"

namespace AscendC {

inline int64_t GetBlockNum() { return mst::ThisCore().blockNum; }
inline int64_t GetBlockIdx() { return mst::ThisCore().blockIdx; }
inline int64_t GetSubBlockIdx() { return 0; }
inline int64_t GetSubBlockNum() { return 1; }

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

template <bool isAIVOnly = true>
inline void SyncAll() {
  check::SyncAll();
  detail::StreamFence();
  mst::SyncAllCores();
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
