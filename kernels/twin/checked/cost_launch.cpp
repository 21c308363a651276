// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "cost_launch.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "core.h"
#include "cost.h"
#include "rates.h"
#include "runtime.h"
#include "schedule.h"

namespace AscendC {
namespace check {
namespace {

constexpr int64_t kBitsPerWord = 64;

struct Costs {
  std::mutex mutex;
  std::vector<std::unique_ptr<Traffic>> traffic;  // per tensor
  std::vector<Trace> traces;
};
Costs& TheCosts() {
  static Costs costs;
  return costs;
}
std::atomic<bool> isCosting{false};

const char* NameOf(Origin origin) {
  return origin == Origin::kMeasured ? "measured" : origin == Origin::kDerived ? "derived" : "assumed";
}

// Members of a JSON object or array, separated by commas.
class Json {
 public:
  std::string text() const { return text_; }
  void Number(const char* key, double value) {
    char number[32];
    std::snprintf(number, sizeof(number), "%.17g", value);
    Raw(key, number);
  }
  void Text(const char* key, const std::string& value) { Raw(key, "\"" + value + "\""); }
  void Raw(const char* key, const std::string& value) { Item("\"" + std::string(key) + "\": " + value); }
  void Item(const std::string& value) { text_ += (text_.empty() ? "" : ", ") + value; }
  void Object(const Json& members) { Item("{" + members.text() + "}"); }
  void List(const char* key, const Json& items) { Raw(key, "[" + items.text() + "]"); }

 private:
  std::string text_;
};

void AddLines(const Schedule& schedule, Json* report) {
  std::vector<Site> sites;
  for (const auto& [key, usage] : schedule.usage) sites.push_back(key.site);
  const std::vector<std::string> lines = LinesOf(sites);
  // Several stacks may end in the same line.
  std::map<std::pair<Unit, std::pair<std::string, std::string>>, Usage> byLine;
  size_t i = 0;
  for (const auto& [key, usage] : schedule.usage) byLine[{key.unit, {key.name, lines[i++]}}] += usage;
  Json items;
  for (const auto& [key, usage] : byLine) {
    Json item;
    item.Text("pipe", NameOf(key.first));
    item.Text("name", key.second.first);
    item.Text("line", key.second.second);
    item.Number("count", static_cast<double>(usage.count));
    item.Number("bytes", static_cast<double>(usage.bytes));
    item.Number("busy", usage.busy);
    item.Number("idleBefore", usage.idleBefore);
    items.Object(item);
  }
  report->List("instructions", items);
}

std::string ReportText() {
  Costs& costs = TheCosts();
  const mst::Platform& platform = CheckedPlatform();
  std::sort(costs.traces.begin(), costs.traces.end(), [](const Trace& a, const Trace& b) { return a.core < b.core; });
  const Schedule schedule = LayOut(costs.traces, Of(kHbmRate) * platform.cubeCores);
  int64_t fromHbm = 0, toHbm = 0, fromL2 = 0, toL2 = 0, ubBytes = 0, l1Bytes = 0;
  for (const auto& traffic : costs.traffic) {
    fromHbm += traffic->hbm(false);
    toHbm += traffic->hbm(true);
    fromL2 += traffic->total(false);
    toL2 += traffic->total(true);
  }
  for (const Trace& trace : costs.traces) {
    ubBytes = std::max(ubBytes, trace.ubBytes);
    l1Bytes = std::max(l1Bytes, trace.l1Bytes);
  }
  Json report;
  report.Text("soc", platform.soc);
  report.Number("mhz", platform.mhz);
  report.Number("vectorCores", platform.vectorCores);
  report.Number("cubeCores", platform.cubeCores);
  report.Number("cores", static_cast<double>(costs.traces.size()));
  report.Number("slowestCore", schedule.slowest);
  report.Number("coreCycles", schedule.cycles);
  report.Number("hbmCycles", static_cast<double>(fromHbm + toHbm) / (Of(kHbmRate) * platform.cubeCores));
  report.Number("l2ReadCycles", static_cast<double>(fromL2) / (Of(kL2ReadRate) * platform.cubeCores));
  report.Number("l2WriteCycles", static_cast<double>(toL2) / (Of(kL2WriteRate) * platform.cubeCores));
  report.Number("fromHbm", static_cast<double>(fromHbm));
  report.Number("toHbm", static_cast<double>(toHbm));
  report.Number("fromL2", static_cast<double>(fromL2));
  report.Number("toL2", static_cast<double>(toL2));
  report.Number("ubBytes", static_cast<double>(ubBytes));
  report.Number("ubCapacity", static_cast<double>(platform.ubBytes));
  report.Number("l1Bytes", static_cast<double>(l1Bytes));
  report.Number("l1Capacity", static_cast<double>(platform.l1Bytes));
  report.Number("products", schedule.products);
  report.Number("peakCubeCycles", schedule.peakCubeCycles / platform.cubeCores);
  report.Number("vectorBusy", schedule.vectorBusy);
  AddLines(schedule, &report);
  costs.traces.clear();
  return "{" + report.text() + "}";
}

void AddRate(const std::string& name, double value, const char* unit, Origin origin, const std::string& note,
             Json* items) {
  Json item;
  item.Text("name", name);
  item.Number("value", value);
  item.Text("unit", unit);
  item.Text("origin", NameOf(origin));
  item.Text("note", note);
  items->Object(item);
}

std::string RatesText() {
  Json items;
  for (const VectorRate& rate : kVectorRates) {
    AddRate(rate.name, rate.elements, "elements/cycle", rate.origin, rate.byElement ? "of any width" : "", &items);
  }
  for (const Sequence& sequence : kSequences) {
    std::string passes;
    for (const Pass& pass : sequence.passes) {
      for (int i = 0; pass.instruction != nullptr && i < pass.times; ++i) {
        if (!passes.empty()) passes += ", ";
        passes += pass.instruction;
        if (pass.over != Over::kElements) passes += pass.over == Over::kRowOf64 ? " (64 a row)" : " (8 a row)";
      }
    }
    AddRate(sequence.name, 0, "", Origin::kAssumed, passes, &items);
  }
  for (const Rate& rate : kRates) AddRate(rate.name, rate.value, rate.unit, rate.origin, rate.note, &items);
  for (const Point& point : kToL1) {
    AddRate("GM to L1", point.value, "B/cycle", Origin::kMeasured,
            "copies of " + std::to_string(static_cast<int>(point.at) >> 10) + " KB", &items);
  }
  for (const Point& point : kMmad) {
    AddRate("Mmad", point.value, "products/cycle", Origin::kMeasured,
            "fp16, block of side " + std::to_string(static_cast<int>(point.at)), &items);
  }
  return "[" + items.text() + "]";
}

}  // namespace

Traffic::Traffic(const mst::GmBuffer& gm, int64_t l2Bytes)
    : gm_(gm), stays_(gm.bytes <= l2Bytes), total_{{0}, {0}}, hbm_{{0}, {0}} {
  const auto words = static_cast<size_t>(gm.bytes / (kBlock * kBitsPerWord) + 1);
  for (auto& touched : touched_) touched.reset(new std::atomic<uint64_t>[words]());
}

int64_t Traffic::Pass(const Operand& o) {
  const int64_t bytes = o.blocks * o.bytes;
  total_[o.writes] += bytes;
  int64_t hbm = 0;
  if (!stays_) {
    hbm = bytes;
  } else if (gm_.role != mst::GmRole::kWorkspace && (o.writes || gm_.role != mst::GmRole::kOutput)) {
    const int64_t first = static_cast<int64_t>(o.address - reinterpret_cast<uint64_t>(gm_.data));
    const int64_t runs = o.gapBytes == 0 ? 1 : o.blocks;
    for (int64_t i = 0; i < runs; ++i) {
      const int64_t begin = first + i * (o.bytes + o.gapBytes);
      hbm += Mark(o.writes, begin, begin + bytes / runs);
    }
  }
  hbm_[o.writes] += hbm;
  return hbm;
}

int64_t Traffic::Mark(bool writes, int64_t begin, int64_t end) {
  const int64_t first = begin / kBlock, last = (end - 1) / kBlock;
  int64_t blocks = 0;
  for (int64_t word = first / kBitsPerWord; word <= last / kBitsPerWord; ++word) {
    const int64_t from = std::max<int64_t>(first - word * kBitsPerWord, 0);
    const int64_t to = std::min<int64_t>(last - word * kBitsPerWord, kBitsPerWord - 1);
    const uint64_t mask = ~uint64_t{0} >> (kBitsPerWord - 1 - (to - from)) << from;
    const uint64_t before = touched_[writes][static_cast<size_t>(word)].fetch_or(mask, std::memory_order_relaxed);
    blocks += __builtin_popcountll(mask & ~before);
  }
  return blocks * kBlock;
}

void BeginCosts(const mst::Platform& platform, const mst::GmBuffer* buffers, int count) {
  Costs& costs = TheCosts();
  costs.traces.clear();
  costs.traffic.clear();
  if (!IsCosting()) return;
  if (platform.mhz == 0) mst::KernelError("the cost model knows no clock of this platform");
  for (int i = 0; i < count; ++i) {
    costs.traffic.push_back(std::make_unique<Traffic>(buffers[i], platform.l2Bytes));
  }
}

Traffic& TrafficOf(const mst::GmBuffer& gm) {
  for (const auto& traffic : TheCosts().traffic) {
    if (traffic->data() == gm.data) return *traffic;
  }
  mst::KernelError("the cost model was told of no such tensor");
}

void AddTrace(Trace trace) {
  Costs& costs = TheCosts();
  const std::lock_guard<std::mutex> lock(costs.mutex);
  costs.traces.push_back(std::move(trace));
}

bool IsCosting() { return isCosting.load(std::memory_order_relaxed); }

}  // namespace check
}  // namespace AscendC

// From now on launches count costs, or check again.
extern "C" __attribute__((visibility("default"))) void mst_cost_switch(int on) {
  AscendC::check::isCosting.store(on != 0);
}

// JSON: what the last launch costs.
extern "C" __attribute__((visibility("default"))) const char* mst_cost_report() {
  static std::string text;
  text = AscendC::check::ReportText();
  return text.c_str();
}

// JSON: the figures of rates.h.
extern "C" __attribute__((visibility("default"))) const char* mst_cost_rates() {
  static const std::string text = AscendC::check::RatesText();
  return text.c_str();
}
