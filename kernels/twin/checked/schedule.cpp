// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "schedule.h"

#include <algorithm>
#include <utility>

#include "cube.h"
#include "rates.h"

namespace AscendC {
namespace check {
namespace {

Unit UnitOf(Lane lane) {
  static constexpr Unit kUnitsOfLanes[] = {kUnitS, kUnitV, kUnitCubeM, kUnitMte2, kUnitMte3};
  return kUnitsOfLanes[lane];
}

// The memory that all cores share. Time is cut into slices, each of which has so many bytes to give: who comes later in
// program order may still be served earlier in time.
class Hbm {
 public:
  explicit Hbm(double rate) : rate_(rate) {}

  // When `bytes` that are asked for at `request` are there.
  double Serve(double request, int64_t bytes) {
    double left = static_cast<double>(bytes);
    const auto first = static_cast<size_t>(request / kSlice);
    size_t slice = first;
    for (; left > 0; ++slice) {
      slice = FirstWithRoom(slice);
      const double taken = std::min(left, rate_ * kSlice - given_[slice]);
      given_[slice] += taken;
      left -= taken;
      if (left <= 0 && slice != first) return static_cast<double>(slice) * kSlice + given_[slice] / rate_;
    }
    return request + static_cast<double>(bytes) / rate_;
  }

 private:
  static constexpr double kSlice = 128;  // cycles

  // From `slice` on; those that have nothing left are skipped together.
  size_t FirstWithRoom(size_t slice) {
    size_t found = slice;
    for (;; found = next_[found]) {
      for (size_t i = given_.size(); i <= found; ++i) next_.push_back(i + 1);
      given_.resize(next_.size(), 0);
      if (given_[found] < rate_ * kSlice) break;
    }
    while (slice != found) slice = std::exchange(next_[slice], found);
    return found;
  }

  double rate_;
  std::vector<double> given_;  // bytes of each slice
  std::vector<size_t> next_;   // from each that is full, one at or before the first with room
};

// A vector core on its way through its trace.
class Stream {
 public:
  explicit Stream(const Trace& trace) : trace_(&trace) {}

  const Trace& trace() const { return *trace_; }
  bool isDone() const { return next_ == trace_->steps.size(); }
  bool isAtSyncAll() const { return !isDone() && Head().kind == Step::kSyncAll; }
  // Whether what is next needs the cube core or HBM, and from when on.
  bool isAtShared() const { return !isDone() && (IsForCube(Head()) || Head().hbmBytes > 0); }
  double Request() const {
    const double ready = std::max(scalar_ + IssueCycles(Head()), ReadyAt(Head()));
    return IsForCube(Head()) ? ready + Of(kMessage) : std::max(ready, free_[Head().lane]);
  }
  double Now() const {
    double now = scalar_;
    for (const auto& ends : ends_) now = std::max(now, ends.empty() ? 0 : ends.back());
    return now;
  }

  // Everything up to the next step that others have a part in.
  void Advance() {
    while (!isDone() && !isAtShared() && !isAtSyncAll()) Take(0);
  }
  void Serve(CubeCore* cube, Hbm* hbm) {
    const Step& step = Head();
    const double request = Request();
    const double there = hbm->Serve(request, step.hbmBytes);
    if (!IsForCube(step)) {
      Take(there);
      return;
    }
    Issue(step, &At(step, kUnitS));
    const CubeCore before = *cube;
    const double end = step.kind == Step::kProduct
                           ? cube->Multiply(std::max(request, InL1(step)), trace_->products[step.product])
                           : cube->Load(request, step.bytes);
    Finish(step, std::max(end, there), Of(kMessage));
    Note(step, kUnitCubeMte2, before.mte2, cube->mte2);
    Note(step, kUnitCubeMte1, before.mte1, cube->mte1);
    Note(step, kUnitCubeM, before.m, cube->m);
    Note(step, kUnitCubeFix, before.fix, cube->fix);
    ++next_;
  }
  void PassSyncAll(double at) {
    scalar_ = at;
    for (double& free : free_) free = at;
    ++next_;
  }

  const std::map<UsageKey, Usage>& usage() const { return usage_; }
  double vectorBusy() const { return vectorBusy_; }

 private:
  const Step& Head() const { return trace_->steps[next_]; }
  static bool IsForCube(const Step& step) { return step.kind == Step::kCopyToL1 || step.kind == Step::kProduct; }
  static double IssueCycles(const Step& step) { return step.issues * Of(kScalarIssue); }

  // The cube core waits for its own copies and products, the pipes of the vector core for each other; what goes from
  // one core to the other goes by way of the scalar unit, which sends the orders and waits for what they make.
  double ReadyAt(const Step& step) const {
    double ready = 0;
    const auto waitFor = [&](const std::vector<double>& ends, Lane lane) {
      if (step.after[lane] > 0) ready = std::max(ready, ends[step.after[lane] - 1]);
    };
    if (IsForCube(step) || step.kind == Step::kScalarWait) waitFor(ends_[kCube], kCube);
    if (IsForCube(step)) return ready;
    for (const Lane lane : {kScalar, kVector, kCopyIn, kCopyOut}) waitFor(ends_[lane], lane);
    return ready;
  }

  // When the copies to L1 that a product needs are complete, which the cube core itself knows.
  double InL1(const Step& step) const { return step.after[kCopyIn] > 0 ? inL1_[step.after[kCopyIn] - 1] : 0; }

  void Issue(const Step& step, Usage* usage) {
    scalar_ += IssueCycles(step);
    usage->count += step.issues;
    usage->busy += IssueCycles(step);
  }

  // A lane's instructions complete in order, and the copies to L1 among those of kCopyIn in an order of their own.
  // `message`: how much later the vector core knows that the cube core is done.
  void Finish(const Step& step, double end, double message = 0) {
    const auto append = [](std::vector<double>* ends, double at) {
      ends->push_back(ends->empty() ? at : std::max(ends->back(), at));
    };
    append(&ends_[step.lane], step.kind == Step::kCopyToL1 ? 0 : end + message);
    if (step.lane == kCopyIn) append(&inL1_, step.kind == Step::kCopyToL1 ? end : 0);
  }

  // `there`: when HBM has delivered what the instruction moves.
  void Take(double there) {
    const Step& step = Head();
    ++next_;
    if (step.kind == Step::kScalarWait) {
      const double before = scalar_;
      scalar_ = std::max(scalar_, ReadyAt(step));
      Usage& usage = At(step, kUnitS);
      usage.idleBefore += scalar_ - before;
      Issue(step, &usage);
      return;
    }
    Usage& usage = At(step, UnitOf(step.lane));
    usage.bytes += step.bytes;
    Issue(step, &At(step, kUnitS));
    if (step.lane == kScalar) {
      usage.busy += step.busy;
      scalar_ = std::max(scalar_, ReadyAt(step)) + step.busy;
      Finish(step, scalar_);
      return;
    }
    usage.count += step.busy > 0;  // a buffer for temporaries is no instruction
    double& free = free_[step.lane];
    const double begin = std::max({free, scalar_, ReadyAt(step)});
    usage.idleBefore += begin - free;
    free = std::max(begin + step.busy, there);
    usage.busy += free - begin;
    Finish(step, free + step.latency);
    if (step.lane == kVector) vectorBusy_ += step.busy;
  }

  Usage& At(const Step& step, Unit unit) { return usage_[{unit, step.name, step.site}]; }

  void Note(const Step& step, Unit unit, const CubePipe& before, const CubePipe& after) {
    if (after.count == before.count) return;
    Usage& usage = At(step, unit);
    usage.count += after.count - before.count;
    usage.bytes += after.bytes - before.bytes;
    usage.busy += after.busy - before.busy;
    usage.idleBefore += after.free - before.free - (after.busy - before.busy);
  }

  const Trace* trace_;
  size_t next_ = 0;
  double scalar_ = 0;  // where the scalar unit is
  double free_[kLanes] = {};
  std::vector<double> ends_[kLanes];
  std::vector<double> inL1_;  // of the copies of kCopyIn that the cube core makes
  std::map<UsageKey, Usage> usage_;
  double vectorBusy_ = 0;
};

int CubeOf(const Trace& trace) { return trace.core / 2; }

// Whether any core was waiting for the others.
bool PassSyncAll(std::vector<Stream>* streams) {
  bool any = false;
  double latest = 0;
  for (const Stream& stream : *streams) {
    any = any || stream.isAtSyncAll();
    latest = std::max(latest, stream.Now());
  }
  for (Stream& stream : *streams) {
    if (!stream.isAtSyncAll()) continue;
    stream.PassSyncAll(latest + Of(kSyncAll));
    stream.Advance();
  }
  return any;
}

}  // namespace

const char* NameOf(Unit unit) {
  static constexpr const char* kNames[] = {"S", "V", "MTE2", "MTE3", "cube MTE2", "cube MTE1", "cube M", "cube FIX"};
  return kNames[unit];
}

Schedule LayOut(const std::vector<Trace>& traces, double hbmRate) {
  Schedule schedule;
  std::vector<Stream> streams(traces.begin(), traces.end());
  std::map<int, CubeCore> cubes;
  Hbm hbm(hbmRate);
  for (Stream& stream : streams) stream.Advance();
  for (;;) {
    Stream* first = nullptr;
    double earliest = 0;
    for (Stream& stream : streams) {
      if (!stream.isAtShared()) continue;
      const double request = stream.Request();
      if (first != nullptr && request >= earliest) continue;
      first = &stream;
      earliest = request;
    }
    if (first == nullptr) {  // all are at SyncAll, or done
      if (!PassSyncAll(&streams)) break;
      continue;
    }
    first->Serve(&cubes[CubeOf(first->trace())], &hbm);
    first->Advance();
  }
  const Stream* slowest = nullptr;
  for (const Stream& stream : streams) {
    schedule.vectorBusy += stream.vectorBusy();
    if (stream.Now() <= schedule.cycles) continue;
    schedule.cycles = stream.Now();
    slowest = &stream;
  }
  for (const Trace& trace : traces) {
    for (const Step& step : trace.steps) {
      if (step.kind != Step::kProduct) continue;
      const Product& p = trace.products[step.product];
      schedule.products += static_cast<double>(p.m) * p.n * p.k;
      schedule.peakCubeCycles += PeakCycles(p);
    }
  }
  if (slowest == nullptr) return schedule;
  schedule.slowest = slowest->trace().core;
  for (const Stream& stream : streams) {
    if (CubeOf(stream.trace()) != CubeOf(slowest->trace())) continue;
    for (const auto& [key, usage] : stream.usage()) {
      if (key.unit >= kUnitCubeMte2 || &stream == slowest) schedule.usage[key] += usage;
    }
  }
  return schedule;
}

}  // namespace check
}  // namespace AscendC
