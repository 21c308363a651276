// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// A run that counts costs: kernels run as ever, but what they do is timed with rates.h instead of being checked.
//
// Recorded per core (trace.h), and laid out in time when all cores are done (schedule.h).
#ifndef MST_TWIN_CHECKED_COST_H_
#define MST_TWIN_CHECKED_COST_H_

#include "core.h"
#include "footprint.h"

namespace AscendC {
namespace check {

bool IsCosting();

void ChargeInstruction(Core* core, const Step& step, const Range& range, const Operand* operands, int count);
void ChargeScalar(Core* core, const Step& step, const Operand& operand);
// The scalar unit goes on when what it knows to be complete is.
void ChargeScalarWait(Core* core, const char* name, Site site);
void ChargeSyncAll(Core* core);
// The core begins, and has ended.
void BeginTrace(Core* core);
void PublishTrace(Core* core);

}  // namespace check
}  // namespace AscendC

#endif  // MST_TWIN_CHECKED_COST_H_
