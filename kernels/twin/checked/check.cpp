// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// The rules of the device that the checked build enforces: capacity and alignment of local memory, limits of masks,
// repeats and copies, the order of a queue, pairs of flags, and every access inside its tensor. Fresh local memory is
// poisoned, so that a kernel which reads what was never written gives NaN.
#include "check.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "common/cpu_entry.h"
#include "kernel_line.h"
#include "runtime.h"

namespace AscendC {
namespace check {
namespace {

constexpr int kPoison = 0xff;  // NaN in every float type, -1 in every integer
constexpr int64_t kBlock = 32;
constexpr int64_t kRepeatBytes = 256;
constexpr int kMaxRepeat = 255;
constexpr int kMaxCopyBlocks = 4095;
constexpr int kEventIds = 8;

enum class State { kFree, kAllocated, kQueued, kDequeued, kAlways };

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

struct Buffer {
  std::string name;
  uint64_t base;
  uint32_t bytes;
  State state;
};

// One logical core, from its TPipe's begin to its end.
struct Core {
  std::map<const void*, Buffer> buffers;
  int64_t ubBytes = 0;
  int64_t l1Bytes = 0;
  bool flags[static_cast<int>(HardEvent::MAX)][kEventIds] = {};
};

thread_local Core core;
std::vector<mst::GmBuffer> gmBuffers;  // of the launch, which has the pool for itself
mst::Platform platform = mst::CpuPlatform(1);

[[noreturn]] __attribute__((format(printf, 2, 3))) void Violation(const char* name, const char* format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  mst::KernelError((std::string(name) + ": " + text + " (core " + std::to_string(mst::ThisCore().blockIdx) + ", " +
                    KernelLine() + ")")
                       .c_str());
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
  const auto found = core.buffers.find(base);
  if (found == core.buffers.end()) Violation(name, "an operand is in no buffer of this core's TPipe");
  return found->second;
}

// Bytes from the operand's address to the end of what it covers.
int64_t ExtentOf(const Operand& o, const Range& range) {
  if (o.walk == Operand::Walk::kRun) return o.elements * o.elementBytes;
  if (o.walk == Operand::Walk::kBlocks) return (o.blocks - 1) * (o.bytes + o.gapBytes) + o.bytes;
  if (range.count >= 0) return range.count * o.elementBytes;
  if (range.repeat == 0 || range.lastLane < 0) return 0;
  const int64_t lane = range.lastLane * o.elementBytes;
  return (range.repeat - 1) * o.rep * kBlock + lane / kBlock * o.blk * kBlock + lane % kBlock + o.elementBytes;
}

void InspectGlobal(const char* name, const Operand& o, int64_t extent) {
  if (extent <= 0) return;
  for (const mst::GmBuffer& gm : gmBuffers) {
    const uint64_t base = reinterpret_cast<uint64_t>(gm.data);
    if (o.address < base || o.address >= base + gm.bytes) continue;
    const int64_t offset = static_cast<int64_t>(o.address - base);
    if (offset + extent <= gm.bytes) return;
    Violation(name, "%s bytes [%ld, %ld) of '%s', which has %ld", o.writes ? "writes" : "reads",
              static_cast<long>(offset), static_cast<long>(offset + extent), gm.name, static_cast<long>(gm.bytes));
  }
  Violation(name, "%s global memory outside every tensor", o.writes ? "writes" : "reads");
}

void InspectLocal(const char* name, const Operand& o, int64_t extent, bool scalar) {
  const Buffer& buffer = BufferAt(name, o.buffer);
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
}

// Limits of the instruction itself.
void InspectRange(const char* name, const Range& range, const Operand* operands, int count) {
  if (range.count >= 0) return;
  if (range.count < -1) Violation(name, "count is %ld", static_cast<long>(range.count));
  if (range.repeat < 1 || range.repeat > kMaxRepeat) {
    Violation(name, "repeat must be from 1 to %d, but is %d", kMaxRepeat, range.repeat);
  }
  int widest = 1;
  for (int i = 0; i < count; ++i) {
    if (operands[i].walk == Operand::Walk::kStrided) widest = std::max(widest, operands[i].elementBytes);
  }
  const int64_t lanes = kRepeatBytes / widest;
  if (range.lastLane < 0 || range.lastLane >= lanes) {
    Violation(name, "mask must cover 1 to %ld elements of %d bytes, but covers %ld", static_cast<long>(lanes), widest,
              static_cast<long>(range.lastLane + 1));
  }
}

void InspectBlocks(const char* name, const Operand& o) {
  if (o.walk != Operand::Walk::kBlocks) return;
  if (std::string(name) == "DataCopy" && o.bytes % kBlock != 0 && o.buffer != nullptr) {
    Violation(name, "length must be a multiple of %ld bytes, but is %ld", static_cast<long>(kBlock),
              static_cast<long>(o.bytes));
  }
  if (std::string(name) == "DataCopyPad" && o.blocks > kMaxCopyBlocks) {
    Violation(name, "blockCount must be at most %d, but is %ld", kMaxCopyBlocks, static_cast<long>(o.blocks));
  }
}

void Move(const char* name, const void* base, std::initializer_list<State> from, State to) {
  Buffer& buffer = BufferAt(name, base);
  if (std::find(from.begin(), from.end(), buffer.state) == from.end()) {
    Violation(name, "%s is %s", buffer.name.c_str(), NameOf(buffer.state));
  }
  buffer.state = to;
}

}  // namespace

Range Count(int64_t count) { return {count < 0 ? count - 1 : count, 0, 0}; }
Range Masked(uint64_t mask, int repeat) { return {-1, repeat, static_cast<int64_t>(mask) - 1}; }
Range Masked(const uint64_t* mask, int repeat) {
  int64_t last = -1;
  for (int lane = 0; lane < 128; ++lane) {
    if ((mask[lane / 64] >> lane % 64 & 1) != 0) last = lane;
  }
  return {-1, repeat, last};
}

namespace detail {

void Inspect(pipe_t /*pipe*/, const char* name, const Range& range, const Operand* operands, int count) {
  InspectRange(name, range, operands, count);
  for (int i = 0; i < count; ++i) {
    const Operand& o = operands[i];
    InspectBlocks(name, o);
    if (o.buffer == nullptr) {
      InspectGlobal(name, o, ExtentOf(o, range));
    } else {
      InspectLocal(name, o, ExtentOf(o, range), false);
    }
  }
}

void InspectScalar(const char* name, const Operand& operand) {
  if (operand.buffer == nullptr) {
    InspectGlobal(name, operand, operand.elementBytes);
  } else {
    InspectLocal(name, operand, operand.elementBytes, true);
  }
}

}  // namespace detail

void SetFlag(HardEvent event, int32_t id) {
  if (id < 0 || id >= kEventIds) Violation("SetFlag", "event id must be from 0 to %d, but is %d", kEventIds - 1, id);
  bool& flag = core.flags[static_cast<int>(event)][id];
  if (flag) Violation("SetFlag", "event %d of kind %d is set already", id, static_cast<int>(event));
  flag = true;
}

void WaitFlag(HardEvent event, int32_t id) {
  if (id < 0 || id >= kEventIds) Violation("WaitFlag", "event id must be from 0 to %d, but is %d", kEventIds - 1, id);
  bool& flag = core.flags[static_cast<int>(event)][id];
  if (!flag) Violation("WaitFlag", "event %d of kind %d is never set: it waits forever", id, static_cast<int>(event));
  flag = false;
}

void PipeBegin() { core = Core(); }

void PipeEnd() {
  if (std::uncaught_exceptions() != 0) return;  // a violation is on its way already
  for (int event = 0; event < static_cast<int>(HardEvent::MAX); ++event) {
    for (int id = 0; id < kEventIds; ++id) {
      if (core.flags[event][id]) {
        mst::KernelError(("TPipe: event " + std::to_string(id) + " of kind " + std::to_string(event) +
                          " was set but never waited for")
                             .c_str());
      }
    }
  }
  for (const auto& entry : core.buffers) {
    if (entry.second.state == State::kQueued) {
      mst::KernelError(("TPipe: " + entry.second.name + " is in the queue at the end of the kernel").c_str());
    }
  }
}

void NewBuffer(const void* queue, TPosition position, uint8_t* base, uint32_t bytes) {
  const bool inL1 = AscendC::detail::IsL1(position);
  int64_t& used = inL1 ? core.l1Bytes : core.ubBytes;
  const int64_t capacity = inL1 ? platform.l1Bytes : platform.ubBytes;
  used += bytes;
  const std::string name = std::string(NameOf(position)) + " buffer " + std::to_string(core.buffers.size());
  if (used > capacity) {
    Violation("InitBuffer", "%s of %u bytes makes %ld, more than the %ld of %s on %s", name.c_str(), bytes,
              static_cast<long>(used), static_cast<long>(capacity), inL1 ? "L1" : "the unified buffer", platform.soc);
  }
  std::memset(base, kPoison, bytes);
  const bool isQueue = queue != nullptr;
  core.buffers[base] = {name, reinterpret_cast<uint64_t>(base), bytes, isQueue ? State::kFree : State::kAlways};
}

void QueueAlloc(const void* /*queue*/, const void* buffer) {
  Move("AllocTensor", buffer, {State::kFree}, State::kAllocated);
  std::memset(const_cast<void*>(buffer), kPoison, BufferAt("AllocTensor", buffer).bytes);
}
void QueueEnQue(const void* /*queue*/, const void* buffer, TPosition /*src*/, TPosition /*dst*/) {
  Move("EnQue", buffer, {State::kAllocated, State::kDequeued}, State::kQueued);
}
void QueueDeQue(const void* /*queue*/, const void* buffer, TPosition /*src*/, TPosition /*dst*/) {
  Move("DeQue", buffer, {State::kQueued}, State::kDequeued);
}
void QueueFree(const void* /*queue*/, const void* buffer) {
  Move("FreeTensor", buffer, {State::kAllocated, State::kDequeued}, State::kFree);
}

}  // namespace check
}  // namespace AscendC

extern "C" __attribute__((visibility("default"))) void mst_launch_begin(const mst::Platform* platform,
                                                                        const mst::GmBuffer* buffers, int count) {
  AscendC::check::platform = *platform;
  AscendC::check::gmBuffers.assign(buffers, buffers + count);
}
