// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// A launch whose costs are counted: what its cores did, and which bytes of each tensor they touched.
#ifndef MST_TWIN_CHECKED_COST_LAUNCH_H_
#define MST_TWIN_CHECKED_COST_LAUNCH_H_

#include <atomic>
#include <memory>

#include "check.h"
#include "common/cpu_entry.h"
#include "trace.h"

namespace AscendC {
namespace check {

// Of one tensor, by all cores.
class Traffic {
 public:
  Traffic(const mst::GmBuffer& gm, int64_t l2Bytes);

  // An operand of a copy, or of a product: how many of its bytes come from HBM or go there. That is each byte the first
  // time, if the tensor stays in L2, where also is what the launch itself wrote; else all of them. The workspace never
  // leaves L2.
  int64_t Pass(const Operand& operand);

  const void* data() const { return gm_.data; }
  int64_t total(bool writes) const { return total_[writes]; }
  int64_t hbm(bool writes) const { return hbm_[writes]; }

 private:
  // Blocks of [begin, end) that were never read, or written, before.
  int64_t Mark(bool writes, int64_t begin, int64_t end);

  mst::GmBuffer gm_;
  bool stays_;
  std::unique_ptr<std::atomic<uint64_t>[]> touched_[2];  // a bit per block: read, written
  std::atomic<int64_t> total_[2];                        // bytes
  std::atomic<int64_t> hbm_[2];
};

void BeginCosts(const mst::Platform& platform, const mst::GmBuffer* buffers, int count);
Traffic& TrafficOf(const mst::GmBuffer& gm);
void AddTrace(Trace trace);

}  // namespace check
}  // namespace AscendC

#endif  // MST_TWIN_CHECKED_COST_LAUNCH_H_
