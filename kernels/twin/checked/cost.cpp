// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "cost.h"

#include <algorithm>
#include <cstring>

#include "common/tiling_math.h"
#include "cost_launch.h"
#include "rates.h"

namespace AscendC {
namespace check {
namespace {

constexpr int64_t kCacheLine = 64;  // of the scalar unit

struct Work {
  double cycles;
  int waits;  // for results of its own instructions
};

const VectorRate& RateOf(const char* name) {
  for (const VectorRate& rate : kVectorRates) {
    if (std::strcmp(rate.name, name) == 0) return rate;
  }
  Violation(name, "the cost model has no rate for this instruction");
}

const Sequence* SequenceOf(const char* name) {
  for (const Sequence& sequence : kSequences) {
    if (std::strcmp(sequence.name, name) == 0) return &sequence;
  }
  return nullptr;
}

double RepeatCycles(const char* name, double repeats) {
  constexpr double kLanes = ONE_REPEAT_BYTE_SIZE / 4;
  return repeats * kLanes / RateOf(name).elements;
}

// Of the high-level functions those on rows have eight copies of a statistic of each row.
Work WorkOf(const Sequence& sequence, int64_t elements, int64_t rows) {
  Work work = {0, -1};
  for (const Pass& pass : sequence.passes) {
    if (pass.instruction == nullptr) break;
    const int64_t lanes = pass.over == Over::kElements ? elements : pass.over == Over::kRowOf64 ? rows * 64 : rows * 8;
    work.cycles += pass.times * RepeatCycles(pass.instruction, static_cast<double>(mst::CeilDiv(lanes, 64)));
    work.waits += pass.times;
  }
  return work;
}

Work VectorWork(const char* name, const Range& range, const Operand* operands, int count) {
  if (range.count == 0) return {0, 0};
  int64_t widest = 1;
  int64_t shortest = INT64_MAX;  // of the runs
  for (int i = 0; i < count; ++i) {
    widest = std::max<int64_t>(widest, operands[i].elementBytes);
    if (operands[i].walk == Operand::Walk::kRun) shortest = std::min(shortest, operands[i].elements);
  }
  if (const Sequence* sequence = SequenceOf(name)) {
    return WorkOf(*sequence, mst::CeilDiv(range.count * widest, 4), shortest / 8);
  }
  const int64_t lanes = ONE_REPEAT_BYTE_SIZE / widest;
  const VectorRate& rate = RateOf(name);
  if (rate.byElement) {
    const int64_t elements = range.count >= 0 ? range.count : range.repeat * lanes;
    return {static_cast<double>(elements) / rate.elements, 0};
  }
  const int64_t repeats = range.count >= 0 ? mst::CeilDiv(range.count, lanes) : range.repeat;
  return {RepeatCycles(name, static_cast<double>(repeats)), 0};
}

// What a copy moves in global memory: runs of bytes, from whole lines if there are gaps between them.
struct Moved {
  int64_t bytes;
  int64_t lineBytes;
};
Moved MovedBy(const Operand& o, const mst::GmBuffer& gm) {
  const int64_t bytes = o.blocks * o.bytes;
  if (o.blocks == 1 || o.gapBytes == 0) return {bytes, bytes};
  const auto line = static_cast<int64_t>(Of(kLine));
  const int64_t first = static_cast<int64_t>(o.address - reinterpret_cast<uint64_t>(gm.data));
  int64_t lines = 0, next = 0;  // next: the first line not yet counted
  for (int64_t i = 0; i < o.blocks; ++i) {
    const int64_t begin = first + i * (o.bytes + o.gapBytes);
    const int64_t from = std::max(next, begin / line);
    next = std::max(from, (begin + o.bytes - 1) / line + 1);
    lines += next - from;
  }
  return {bytes, lines * line};
}

bool IsInL1(const Core& core, const void* buffer) {
  for (size_t i = 0; i < core.used; ++i) {
    if (core.buffers[i].base == reinterpret_cast<uint64_t>(buffer)) return core.buffers[i].isInL1;
  }
  return false;
}

// The index of the product that begins, among the few different ones of a core. Operands: C, A, B.
uint32_t ProductOf(Core* core, const Operand* operands) {
  Product product = core->nextProduct;
  const TCubeTiling& t = product.tiling;
  if (t.baseM < 1 || t.baseN < 1 || t.baseK < 1) Violation("IterateAll", "the tiling has no base block");
  product.elementBytes = operands[1].elementBytes;
  product.aInL1 = operands[1].buffer != nullptr;
  product.bInL1 = operands[2].buffer != nullptr;
  std::vector<Product>& known = core->trace.products;
  const auto isSame = [&](const Product& o) {
    return o.m == product.m && o.n == product.n && o.k == product.k && o.elementBytes == product.elementBytes &&
           o.aInL1 == product.aInL1 && o.bInL1 == product.bInL1 &&
           std::memcmp(&o.tiling, &product.tiling, sizeof(TCubeTiling)) == 0;
  };
  const auto found = std::find_if(known.begin(), known.end(), isSame);
  if (found != known.end()) return static_cast<uint32_t>(found - known.begin());
  known.push_back(product);
  return static_cast<uint32_t>(known.size() - 1);
}

void Append(Core* core, const Step& step) {
  core->trace.steps.push_back(step);
  core->trace.steps.back().issues = static_cast<uint16_t>(core->pendingIssues + (step.kind != Step::kScalarWait));
  core->pendingIssues = 0;
}

}  // namespace

void ChargeInstruction(Core* core, const Step& issued, const Range& range, const Operand* operands, int count) {
  Step step = issued;
  for (int i = 0; i < count; ++i) {
    const Operand& o = operands[i];
    if (o.buffer != nullptr || (o.walk == Operand::Walk::kBlocks && o.blocks == 0)) continue;
    const mst::GmBuffer* gm = GmBufferAt(o.address);
    if (gm == nullptr) Violation(step.name, "%s global memory outside every tensor", o.writes ? "writes" : "reads");
    step.hbmBytes += TrafficOf(*gm).Pass(o);
    if (step.lane == kCube) continue;  // the schedule knows how often it reads them
    const Moved moved = MovedBy(o, *gm);
    step.bytes = moved.bytes;
    step.busy = static_cast<float>(o.writes ? Of(kCopyOutStart) + moved.lineBytes / Of(kCopyOutRate)
                                            : Of(kCopyInStart) + moved.lineBytes / Of(kCopyInRate));
    step.latency = static_cast<float>(Of(o.writes ? kCopyOutLatency : kCopyInLatency));
    if (count == 2 && IsInL1(*core, operands[1 - i].buffer)) step.kind = Step::kCopyToL1;
  }
  if (step.lane == kCube) {
    step.kind = Step::kProduct;
    step.product = ProductOf(core, operands);
  } else if (step.lane == kVector) {
    const Work work = VectorWork(step.name, range, operands, count);
    step.busy = static_cast<float>(work.cycles + work.waits * Of(kVectorStart));
    step.latency = static_cast<float>(work.cycles > 0 ? Of(kVectorStart) : 0);
  }
  Append(core, step);
}

void ChargeScalar(Core* core, const Step& issued, const Operand& operand) {
  Step step = issued;
  step.bytes = operand.elementBytes;
  step.busy = static_cast<float>(Of(kScalarLocal));
  if (operand.buffer == nullptr && core->scalarLines.insert(operand.address / kCacheLine).second) {
    step.busy = static_cast<float>(Of(kScalarGlobal));
  }
  Append(core, step);
}

void ChargeScalarWait(Core* core, const char* name, Site site) {
  Append(core, {name, site, core->timeline.Known(kScalar), Step::kScalarWait, kScalar});
}

void ChargeSyncAll(Core* core) { core->trace.steps.push_back({"SyncAll", 0, {}, Step::kSyncAll, kScalar}); }

void BeginTrace(Core* core) {
  core->timeline.Reset();
  core->trace = {};
  core->pendingIssues = 0;
  core->scalarLines.clear();
}

void PublishTrace(Core* core) {
  core->trace.core = core->index;
  core->trace.ubBytes = core->ubBytes;
  core->trace.l1Bytes = core->l1Bytes;
  AddTrace(std::move(core->trace));
}

}  // namespace check
}  // namespace AscendC
