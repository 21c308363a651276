// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// What a core did in a run that counts costs: its instructions in the order of issue, each with how long it keeps its
// pipe and what had to be complete before.
#ifndef MST_TWIN_CHECKED_TRACE_H_
#define MST_TWIN_CHECKED_TRACE_H_

#include <cstdint>
#include <vector>

#include "kernel_tiling/kernel_tiling.h"
#include "timeline.h"

namespace AscendC {
namespace check {

// An IterateAll. Operands that are not in L1 come from global memory.
struct Product {
  TCubeTiling tiling;
  int32_t m;
  int32_t n;
  int32_t k;
  int32_t elementBytes;
  bool aInL1;
  bool bInL1;
};

struct Step {
  enum Kind : uint8_t {
    kInstruction,
    kCopyToL1,    // by the cube core
    kProduct,     // by the cube core
    kScalarWait,  // no instruction: the scalar unit goes on after `after`
    kSyncAll,
  };

  const char* name;
  Site site;
  Clock after;
  Kind kind;
  Lane lane;
  uint16_t issues = 0;   // by the scalar unit: this and the flags and queue operations before it
  uint32_t product = 0;  // index in Trace::products
  float busy = 0;        // cycles
  float latency = 0;     // cycles from then to the result
  int64_t bytes = 0;     // of a copy or an access
  int64_t hbmBytes = 0;  // of what it reads and writes, all that is not in L2
};

struct Trace {
  int core = 0;
  int64_t ubBytes = 0;
  int64_t l1Bytes = 0;
  std::vector<Step> steps;
  std::vector<Product> products;
};

}  // namespace check
}  // namespace AscendC

#endif  // MST_TWIN_CHECKED_TRACE_H_
