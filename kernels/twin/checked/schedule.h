// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// The traces of a launch laid out in time. Each pipe works in order: an instruction begins when its pipe is free, the
// scalar unit has come to it and everything that the kernel made it wait for is complete. Vector cores 2i and 2i + 1
// share a cube core, which serves them in the order of their calls; all share the bandwidth of HBM.
#ifndef MST_TWIN_CHECKED_SCHEDULE_H_
#define MST_TWIN_CHECKED_SCHEDULE_H_

#include <map>
#include <tuple>
#include <vector>

#include "trace.h"

namespace AscendC {
namespace check {

// The pipes of a vector core, then those of its cube core.
enum Unit { kUnitS, kUnitV, kUnitMte2, kUnitMte3, kUnitCubeMte2, kUnitCubeMte1, kUnitCubeM, kUnitCubeFix };
const char* NameOf(Unit unit);

struct Usage {
  int64_t count = 0;
  int64_t bytes = 0;
  double busy = 0;        // cycles
  double idleBefore = 0;  // cycles that the pipe had nothing to do before these instructions

  Usage& operator+=(const Usage& other) {
    count += other.count;
    bytes += other.bytes;
    busy += other.busy;
    idleBefore += other.idleBefore;
    return *this;
  }
};

struct UsageKey {
  Unit unit;
  const char* name;
  Site site;
  bool operator<(const UsageKey& o) const { return std::tie(unit, name, site) < std::tie(o.unit, o.name, o.site); }
};

struct Schedule {
  double cycles = 0;  // of the slowest core
  int slowest = 0;
  std::map<UsageKey, Usage> usage;  // of the slowest core, and all of its cube core
  double products = 0;              // of all cores
  double peakCubeCycles = 0;        // for these at the peak rate, of all cores together
  double vectorBusy = 0;            // cycles, of all cores together
};

// `traces`: by core. `hbmRate`: bytes per cycle, of all cores together.
Schedule LayOut(const std::vector<Trace>& traces, double hbmRate);

}  // namespace check
}  // namespace AscendC

#endif  // MST_TWIN_CHECKED_SCHEDULE_H_
