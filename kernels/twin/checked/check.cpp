// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// The rules of the device that the checked build enforces: capacity and alignment of local memory, limits of masks,
// repeats and copies, the order of a queue, pairs of flags, every access inside its tensor, and nothing read or
// overwritten before the instruction that it depends on is complete.
#include "check.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "core.h"
#include "cost.h"
#include "footprint.h"
#include "runtime.h"
#include "site.h"
#include "values.h"

namespace AscendC {
namespace check {
namespace {

constexpr int kPoison = 0xff;  // NaN in every float type, -1 in every integer
constexpr int kMaxRepeat = 255;
constexpr int kMaxCopyBlocks = 4095;

const char* NameOf(State state) {
  switch (state) {
    case State::kFree:
      return "free";
    case State::kAllocated:
      return "allocated";
    case State::kQueued:
      return "in the queue";
    case State::kDequeued:
      return "taken from the queue";
    case State::kAlways:
      return "a TBuf";
  }
  return "";
}

const char* NameOf(TPosition position) {
  switch (position) {
    case TPosition::VECIN:
      return "VECIN";
    case TPosition::VECOUT:
      return "VECOUT";
    case TPosition::VECCALC:
      return "VECCALC";
    case TPosition::TSCM:
      return "TSCM";
    default:
      return "local";
  }
}

Buffer& BufferAt(const char* name, const void* base) {
  Core& core = CheckedCore();
  for (size_t i = 0; i < core.used; ++i) {
    if (core.buffers[i].base == reinterpret_cast<uint64_t>(base)) return core.buffers[i];
  }
  Violation(name, "an operand is in no buffer of this core's TPipe");
}

const mst::GmBuffer& InspectGlobal(const char* name, const Operand& o, int64_t extent) {
  const mst::GmBuffer* gm = GmBufferAt(o.address);
  if (gm == nullptr) Violation(name, "%s global memory outside every tensor", o.writes ? "writes" : "reads");
  const int64_t offset = static_cast<int64_t>(o.address - reinterpret_cast<uint64_t>(gm->data));
  if (offset + extent > gm->bytes) {
    Violation(name, "%s bytes [%ld, %ld) of '%s', which has %ld", o.writes ? "writes" : "reads",
              static_cast<long>(offset), static_cast<long>(offset + extent), gm->name, static_cast<long>(gm->bytes));
  }
  if (o.writes && gm->role == mst::GmRole::kInput) Violation(name, "writes the input '%s'", gm->name);
  return *gm;
}

Buffer& InspectLocal(const char* name, const Operand& o, int64_t extent, bool scalar) {
  Buffer& buffer = BufferAt(name, o.buffer);
  if (buffer.state == State::kFree || buffer.state == State::kQueued) {
    Violation(name, "uses %s while it is %s", buffer.name.c_str(), NameOf(buffer.state));
  }
  const int64_t offset = static_cast<int64_t>(o.address - buffer.base);
  if (offset < 0 || offset + std::max<int64_t>(extent, 0) > buffer.bytes) {
    Violation(name, "%s bytes [%ld, %ld) of %s, which has %u", o.writes ? "writes" : "reads", static_cast<long>(offset),
              static_cast<long>(offset + extent), buffer.name.c_str(), buffer.bytes);
  }
  // Results of reductions may lie at any element.
  const bool isSmall = o.walk == Operand::Walk::kRun && extent < kBlock;
  if (!scalar && !isSmall && o.address % kBlock != 0) {
    Violation(name, "address of %s + %ld is no multiple of %ld bytes", buffer.name.c_str(), static_cast<long>(offset),
              static_cast<long>(kBlock));
  }
  return buffer;
}

// What would have ordered the two.
std::string MissingSync(Lane first, Lane second) {
  if (first == kCube) return "the Matmul is not waited for";
  const std::string from = NameOf(first);
  if (first == second) return "PipeBarrier<PIPE_" + from + "> is missing";
  // The scalar unit calls the cube.
  return "event " + from + "_" + NameOf(second == kCube ? kScalar : second) + " is missing";
}

// An instruction on its way through the checks.
struct Issued {
  const char* name;
  Site site;
  Lane lane;
  uint32_t number;
  Clock known;  // complete when it begins
};

Step StepOf(const Issued& issued) { return {issued.name, issued.site, issued.known, Step::kInstruction, issued.lane}; }

void InspectQueue(const char* name, Lane lane, const Operand& o, Buffer* buffer) {
  if (buffer->state == State::kAlways) return;
  if (o.writes && lane == buffer->filler && buffer->state == State::kAllocated) buffer->isFilled = true;
  const bool isUser = lane == buffer->user || (lane == kScalar && buffer->filler == kCopyIn);
  if (isUser && buffer->isFilled) {
    Violation(name, "uses %s, which %s has filled and which went through no EnQue and DeQue since",
              buffer->name.c_str(), NameOf(buffer->filler));
  }
}

Place Locate(const char* name, Lane lane, const Operand& o, int64_t extent) {
  if (o.buffer == nullptr) {
    const mst::GmBuffer& gm = InspectGlobal(name, o, extent);
    return {o, GlobalShadow(&CheckedCore(), gm), &gm, gm.name, reinterpret_cast<uint64_t>(gm.data)};
  }
  Buffer& buffer = InspectLocal(name, o, extent, lane == kScalar);
  InspectQueue(name, lane, o, &buffer);
  return {o, &buffer.shadow, nullptr, buffer.name.c_str(), buffer.base};
}

Touch TouchOf(const Operand& o) { return !o.writes ? kTouchRead : o.adds ? kTouchAdd : kTouchWrite; }

void InspectOrder(const char* name, const Issued& issued, const Place& place, const Spans& spans) {
  Shadow::Conflict conflict;
  const Operand& o = place.operand;
  if (!place.shadow->FindConflict(spans, TouchOf(o), issued.known, &conflict)) return;
  const Timeline::Instruction& earlier = CheckedCore().timeline.At(conflict.lane, conflict.number);
  Violation(name, "%s bytes [%ld, %ld) of %s while %s (%s, %s) may still %s them: %s", o.writes ? "writes" : "reads",
            static_cast<long>(conflict.span.begin), static_cast<long>(conflict.span.end), place.memory, earlier.name,
            NameOf(conflict.lane), LineOf(earlier.site).c_str(), conflict.wrote ? "write" : "read",
            MissingSync(conflict.lane, issued.lane).c_str());
}

bool IsCompare(const char* name) { return std::strncmp(name, "Compare", 7) == 0; }

// Whether an instruction needs a value in every byte that it reads of `o`; see values.h.
bool NeedsValues(const char* name, Lane lane, const Operand& o, const Operand* operands, int count) {
  if (lane == kScalar || lane == kCube || o.adds) return true;
  if (lane != kVector || o.walk != Operand::Walk::kStrided || IsCompare(name)) return false;
  return std::any_of(operands, operands + count, [](const Operand& out) {
    return out.writes && out.walk == Operand::Walk::kRun && out.elements > 0;
  });
}

// Whether what it reads of `o` without a value leaves its results without one.
bool HandsOn(const char* name, Lane lane, const Operand& o) {
  if (lane != kVector) return true;
  return o.walk != Operand::Walk::kRun && std::strcmp(name, "Select") != 0 && !IsCompare(name);
}

Issued Begin(Lane lane, const char* name, Site site) {
  Timeline& timeline = CheckedCore().timeline;
  const Clock known = timeline.Known(lane);
  return {name, site, lane, timeline.Issue(lane, name, site), known};
}

// Limits of the instruction itself.
void InspectRange(const char* name, const Range& range, const Operand* operands, int count) {
  if (range.count >= 0 && IsCompare(name)) {
    int bytes = 0;
    for (int i = 0; i < count; ++i) bytes = std::max(bytes, operands[i].elementBytes);
    if (range.count * bytes % ONE_REPEAT_BYTE_SIZE != 0) {
      Violation(name, "count must fill whole repeats of %d bytes, but %ld elements have %ld bytes",
                static_cast<int>(ONE_REPEAT_BYTE_SIZE), static_cast<long>(range.count),
                static_cast<long>(range.count * bytes));
    }
  }
  if (range.count >= 0) return;
  if (range.count < -1) Violation(name, "count is %ld", static_cast<long>(range.count));
  if (range.repeat < 1 || range.repeat > kMaxRepeat) {
    Violation(name, "repeat must be from 1 to %d, but is %d", kMaxRepeat, range.repeat);
  }
  int widest = 1;
  for (int i = 0; i < count; ++i) {
    if (operands[i].walk == Operand::Walk::kStrided) widest = std::max(widest, operands[i].elementBytes);
  }
  const int64_t lanes = ONE_REPEAT_BYTE_SIZE / widest;
  if (range.lastLane < 0 || range.lastLane >= lanes) {
    Violation(name, "mask must cover 1 to %ld elements of %d bytes, but covers %ld", static_cast<long>(lanes), widest,
              static_cast<long>(range.lastLane + 1));
  }
}

void InspectBlocks(const char* name, const Operand& o) {
  if (o.walk != Operand::Walk::kBlocks) return;
  if (std::strcmp(name, "DataCopy") == 0 && o.bytes % kBlock != 0 && o.buffer != nullptr) {
    Violation(name, "length must be a multiple of %ld bytes, but is %ld", static_cast<long>(kBlock),
              static_cast<long>(o.bytes));
  }
  if (std::strcmp(name, "DataCopyPad") == 0 && o.blocks > kMaxCopyBlocks) {
    Violation(name, "blockCount must be at most %d, but is %ld", kMaxCopyBlocks, static_cast<long>(o.blocks));
  }
}

Buffer& Move(const char* name, const void* base, std::initializer_list<State> from, State to) {
  Buffer& buffer = BufferAt(name, base);
  if (std::find(from.begin(), from.end(), buffer.state) == from.end()) {
    Violation(name, "%s is %s", buffer.name.c_str(), NameOf(buffer.state));
  }
  buffer.state = to;
  return buffer;
}

bool IsUb(TPosition position) { return position != TPosition::GM && !AscendC::detail::IsL1(position); }

// The pipes that fill a queue's buffer and use it, by the event of its EnQue.
Lane FillerOf(TPosition src, TPosition dst) {
  if (src == TPosition::GM) return kCopyIn;
  if (dst == TPosition::GM) return kVector;
  return IsUb(dst) ? kCopyIn : kCopyOut;
}
Lane UserOf(TPosition src, TPosition dst) {
  if (AscendC::detail::IsL1(dst)) return kCube;
  return src == TPosition::GM ? kVector : kCopyOut;
}

// Of L1 or the unified buffer.
void Take(bool inL1, const std::string& name, int64_t bytes) {
  Core& core = CheckedCore();
  int64_t& used = inL1 ? core.l1Bytes : core.ubBytes;
  const int64_t capacity = inL1 ? CheckedPlatform().l1Bytes : CheckedPlatform().ubBytes;
  used += bytes;
  if (used <= capacity) return;
  Violation("InitBuffer", "%s of %ld bytes makes %ld, more than the %ld of %s on %s", name.c_str(),
            static_cast<long>(bytes), static_cast<long>(used), static_cast<long>(capacity),
            inL1 ? "L1" : "the unified buffer", CheckedPlatform().soc);
}

Event& EventAt(const char* name, HardEvent event, int32_t id) {
  if (id < 0 || id >= kEventIds) Violation(name, "event id must be from 0 to %d, but is %d", kEventIds - 1, id);
  return CheckedCore().events[static_cast<int>(event)][id];
}

}  // namespace

Core& CheckedCore() {
  thread_local Core core;
  return core;
}

void Violation(const char* name, const char* format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  const std::string core = mst::NameOfCore(mst::ThisCore().index);
  mst::KernelError((std::string(name) + ": " + text + " (" + core + ", " + LineOf(SiteHere()) + ")").c_str());
}

Range Count(int64_t count) { return {count < 0 ? count - 1 : count, 0, 0, nullptr}; }
Range Masked(uint64_t mask, int repeat) { return {-1, repeat, static_cast<int64_t>(mask) - 1, nullptr}; }
Range Masked(const uint64_t* mask, int repeat) {
  int64_t last = -1;
  for (int lane = 0; lane < 128; ++lane) {
    if ((mask[lane / 64] >> lane % 64 & 1) != 0) last = lane;
  }
  return {-1, repeat, last, mask};
}

namespace detail {

void Inspect(pipe_t pipe, const char* name, const Range& range, const Operand* operands, int count) {
  thread_local std::vector<Place> places;
  thread_local std::vector<Spans> spans;
  InspectRange(name, range, operands, count);
  InspectLane(name, LaneOf(pipe));
  const Issued issued = Begin(LaneOf(pipe), name, SiteHere());
  if (IsCosting()) {
    ChargeInstruction(&CheckedCore(), StepOf(issued), range, operands, count);
    return;
  }
  LostLanes lost;
  places.clear();
  for (int i = 0; i < count; ++i) {
    const Operand& o = operands[i];
    InspectBlocks(name, o);
    const int64_t extent = ExtentOf(o, range);
    if (extent <= 0 && o.buffer == nullptr) continue;
    const Place place = Locate(name, issued.lane, o, extent);
    if (place.shadow == nullptr) continue;
    places.push_back(place);
    if (spans.size() < places.size()) spans.emplace_back();
    Spans& own = spans[places.size() - 1];
    SpansOf(o, range, place.base, &own);
    InspectOrder(name, issued, place, own);
    if (!place.shadow->metUndefined() || (o.writes && !o.adds)) continue;
    const bool refuses = NeedsValues(name, issued.lane, o, operands, count);
    if (refuses || HandsOn(name, issued.lane, o)) lost.Read(name, place, range, refuses);
  }
  for (const bool writes : {false, true}) {
    for (size_t i = 0; i < places.size(); ++i) {
      const Operand& o = places[i].operand;
      if (o.writes != writes) continue;
      places[i].shadow->Note(spans[i], TouchOf(o), issued.lane, issued.number);
      if (writes && (o.tail > 0 || !lost.empty())) lost.Write(name, places[i], range);
    }
  }
}

void InspectScalar(const char* name, const Operand& operand) {
  thread_local Spans spans;
  const Issued issued = Begin(kScalar, name, SiteHere());
  if (IsCosting()) {
    ChargeScalar(&CheckedCore(), StepOf(issued), operand);
    return;
  }
  const Range range = Count(1);
  const Place place = Locate(name, kScalar, operand, operand.elementBytes);
  if (place.shadow == nullptr) return;
  SpansOf(operand, range, place.base, &spans);
  InspectOrder(name, issued, place, spans);
  if (!operand.writes && place.shadow->metUndefined()) LostLanes().Read(name, place, range, true);
  place.shadow->Note(spans, TouchOf(operand), kScalar, issued.number);
}

}  // namespace detail

void SetFlag(HardEvent event, int32_t id) {
  ++CheckedCore().pendingIssues;
  const bool off = IsSwitchedOff("flag");
  Event& flag = EventAt("SetFlag", event, id);
  if (flag.isSet) Violation("SetFlag", "event %d of kind %d is set already", id, static_cast<int>(event));
  flag = {true, off ? Clock{} : CheckedCore().timeline.Capture(SourceOf(event))};
}

void WaitFlag(HardEvent event, int32_t id) {
  ++CheckedCore().pendingIssues;
  const bool off = IsSwitchedOff("flag");
  Event& flag = EventAt("WaitFlag", event, id);
  if (!flag.isSet) {
    Violation("WaitFlag", "event %d of kind %d is never set: it waits forever", id, static_cast<int>(event));
  }
  flag.isSet = false;
  if (off) return;
  CheckedCore().timeline.Join(TargetOf(event), flag.clock);
  if (IsCosting() && TargetOf(event) == kScalar) ChargeScalarWait(&CheckedCore(), "WaitFlag", SiteHere());
}

void Barrier(pipe_t pipe) {
  ++CheckedCore().pendingIssues;
  if (IsSwitchedOff("PipeBarrier")) return;
  Timeline& timeline = CheckedCore().timeline;
  if (pipe == PIPE_ALL) {
    timeline.BarrierAll();
    if (IsCosting()) ChargeScalarWait(&CheckedCore(), "PipeBarrier", SiteHere());
  } else {
    timeline.Barrier(LaneOf(pipe));
  }
}

void NewMatmul(const void* matmul, const TCubeTiling& tiling, int64_t l1Bytes) {
  Core& core = CheckedCore();
  core.matmuls[matmul] = {tiling, {}};
  if (!CheckedPlatform().isCpu()) Take(true, "Matmul object", l1Bytes);
}

void BeginMatmul(const void* matmul, int32_t m, int32_t n, int32_t k) {
  Core& core = CheckedCore();
  core.nextProduct = {core.matmuls[matmul].tiling, m, n, k, 0, false, false};
}

void EndMatmul(const void* matmul) {
  Core& core = CheckedCore();
  core.matmuls[matmul].done = core.timeline.Capture(kCube);
}

void WaitMatmul(const void* matmul) {
  Core& core = CheckedCore();
  core.timeline.Join(kScalar, core.matmuls[matmul].done);
  if (IsCosting()) ChargeScalarWait(&core, "WaitIterateAll", SiteHere());
}

void PipeBegin() {
  Core& core = CheckedCore();
  core.used = 0;
  core.ubBytes = core.l1Bytes = 0;
  for (auto& ids : core.events) {
    for (Event& event : ids) event.isSet = false;
  }
  EnterLaunch(&core);
  core.timeline.BarrierAll();
  core.matmuls.clear();
  if (IsCosting()) BeginTrace(&core);
  BeginGlobal(&core);
}

void PipeEnd() {
  if (std::uncaught_exceptions() != 0) return;  // a violation is on its way already
  Core& core = CheckedCore();
  for (int event = 0; event < static_cast<int>(HardEvent::MAX); ++event) {
    for (int id = 0; id < kEventIds; ++id) {
      if (core.events[event][id].isSet) {
        mst::KernelError(("TPipe: event " + std::to_string(id) + " of kind " + std::to_string(event) +
                          " was set but never waited for")
                             .c_str());
      }
    }
  }
  for (size_t i = 0; i < core.used; ++i) {
    if (core.buffers[i].state == State::kQueued) {
      mst::KernelError(("TPipe: " + core.buffers[i].name + " is in the queue at the end of the kernel").c_str());
    }
  }
  if (IsCosting()) PublishTrace(&core);
  PublishGlobal("TPipe", &core);
}

void NewBuffer(const void* queue, TPosition position, uint8_t* base, uint32_t bytes) {
  const bool off = IsSwitchedOff("InitBuffer");
  if (off && bytes > 0) bytes -= static_cast<uint32_t>(kBlock);
  Core& core = CheckedCore();
  const bool inL1 = AscendC::detail::IsL1(position);
  const std::string name = std::string(NameOf(position)) + " buffer " + std::to_string(core.used);
  // A kernel with a Matmul runs on two vector cores and the cube core that they share: L1 has a buffer for each.
  const bool isTwice = inL1 && !core.matmuls.empty() && !CheckedPlatform().isCpu() && !mst::ThisCore().isCube;
  Take(inL1, name + (isTwice ? ", once for each vector core," : ""), isTwice ? 2 * int64_t{bytes} : bytes);
  std::memset(base, kPoison, bytes);
  if (core.used == core.buffers.size()) core.buffers.emplace_back();
  Buffer& buffer = core.buffers[core.used++];
  buffer.name = name;
  buffer.base = reinterpret_cast<uint64_t>(base);
  buffer.bytes = bytes;
  buffer.isInL1 = inL1;
  buffer.state = queue != nullptr ? State::kFree : State::kAlways;
  buffer.freed = {};
  buffer.shadow.Reset(bytes, false);
}

void QueueAlloc(const void* base, TPosition src, TPosition dst) {
  ++CheckedCore().pendingIssues;
  Buffer& buffer = Move("AllocTensor", base, {State::kFree}, State::kAllocated);
  buffer.filler = FillerOf(src, dst);
  buffer.user = UserOf(src, dst);
  buffer.isFilled = false;
  CheckedCore().timeline.Join(buffer.filler, buffer.freed);
  std::memset(const_cast<void*>(base), kPoison, buffer.bytes);
  if (buffer.bytes > 0) buffer.shadow.Undefine({{0, buffer.bytes}});
}

void QueueEnQue(const void* base, TPosition src, TPosition dst) {
  ++CheckedCore().pendingIssues;
  const bool off = IsSwitchedOff("EnQue");
  Buffer& buffer = Move("EnQue", base, {State::kAllocated, State::kDequeued}, State::kQueued);
  buffer.isSent = !off;
  buffer.ready = off ? Clock{} : CheckedCore().timeline.Capture(FillerOf(src, dst));
}

void QueueDeQue(const void* base, TPosition src, TPosition dst) {
  ++CheckedCore().pendingIssues;
  const bool off = IsSwitchedOff("DeQue");
  Buffer& buffer = Move("DeQue", base, {State::kQueued}, State::kDequeued);
  if (off) return;
  if (buffer.isSent) buffer.isFilled = false;
  CheckedCore().timeline.Join(UserOf(src, dst), buffer.ready);
}

void QueueFree(const void* base, TPosition src, TPosition dst) {
  ++CheckedCore().pendingIssues;
  Buffer& buffer = Move("FreeTensor", base, {State::kAllocated, State::kDequeued}, State::kFree);
  buffer.freed = CheckedCore().timeline.Capture(UserOf(src, dst));
}

}  // namespace check
}  // namespace AscendC
