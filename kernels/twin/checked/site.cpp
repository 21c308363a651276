// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "site.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace AscendC {
namespace check {
namespace {

constexpr int kFrames = 16;
using Stack = std::array<uintptr_t, kFrames>;  // innermost first, 0 where it has left this library

struct Sites {
  std::mutex mutex;
  std::vector<Stack> stacks;
  std::map<Stack, Site> numbers;
  std::map<Site, std::string> lines;              // those that were asked for
  std::set<std::pair<Site, const char*>> passed;  // sites that can be switched off, since they were last asked for
  std::string offKind, offLine;                   // of what is switched off
};
Sites& All() {
  static Sites sites;
  return sites;
}
std::atomic<bool> anyOff{false};
std::atomic<uint32_t> round{0};  // counts the questions for `passed`

// The stack of this thread ends here.
uintptr_t StackEnd() {
  thread_local const uintptr_t end = [] {
    pthread_attr_t attributes;
    void* base = nullptr;
    size_t bytes = 0;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &base, &bytes);
    pthread_attr_destroy(&attributes);
    return reinterpret_cast<uintptr_t>(base) + bytes;
  }();
  return end;
}

const Dl_info& OwnLibrary() {
  static const Dl_info info = [] {
    Dl_info found;
    dladdr(reinterpret_cast<void*>(&OwnLibrary), &found);
    return found;
  }();
  return info;
}

// The code of this library.
struct Code {
  uintptr_t begin = 0;
  uintptr_t end = 0;
};
const Code& OwnCode() {
  static const Code code = [] {
    Code found;
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t /*size*/, void* out) {
          const uintptr_t own = reinterpret_cast<uintptr_t>(&OwnCode);
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            const uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            const uintptr_t end = begin + info->dlpi_phdr[i].p_memsz;
            if (info->dlpi_phdr[i].p_type != PT_LOAD || own < begin || own >= end) continue;
            *static_cast<Code*>(out) = {begin, end};
            return 1;
          }
          return 0;
        },
        &found);
    return found;
  }();
  return code;
}

// A frame record is the address of the one before it and the return address, on x86-64 and on AArch64.
Stack Walk(const uintptr_t* frame) {
  static const Code code = OwnCode();
  Stack stack = {};
  const uintptr_t end = StackEnd() - 2 * sizeof(uintptr_t);
  for (int i = 0; i < kFrames; ++i) {
    const uintptr_t address = frame[1];
    if (address < code.begin || address >= code.end) break;
    stack[i] = address;
    const uintptr_t next = frame[0];
    if (next <= reinterpret_cast<uintptr_t>(frame) || next > end) break;
    frame = reinterpret_cast<const uintptr_t*>(next);
  }
  return stack;
}

uint64_t HashOf(const Stack& stack) {
  uint64_t hash = 0;
  for (int i = 0; i < kFrames && stack[i] != 0; ++i) hash = (hash ^ stack[i]) * UINT64_C(0x9e3779b97f4a7c15);
  return hash;
}

Site NumberOf(const Stack& stack) {
  thread_local std::unordered_map<uint64_t, Site> known;
  const uint64_t hash = HashOf(stack);
  const auto found = known.find(hash);
  if (found != known.end()) return found->second;
  Sites& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto [entry, isNew] = all.numbers.emplace(stack, static_cast<Site>(all.stacks.size()));
  if (isNew) all.stacks.push_back(stack);
  return known[hash] = entry->second;
}

// Of each address, the innermost line outside the twin, or "".
std::map<uintptr_t, std::string> KernelLines(const std::set<uintptr_t>& addresses) {
  std::map<uintptr_t, std::string> lines;
  std::string command = std::string("addr2line -a -i -e '") + OwnLibrary().dli_fname + "'";
  const uintptr_t base = reinterpret_cast<uintptr_t>(OwnLibrary().dli_fbase);
  std::map<uintptr_t, uintptr_t> byOffset;
  char text[1024];
  for (const uintptr_t address : addresses) {
    const uintptr_t offset = address - base - 1;  // the call lies just before the address it returns to
    std::snprintf(text, sizeof(text), " %#lx", static_cast<unsigned long>(offset));
    command += text;
    byOffset[offset] = address;
  }
  FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return lines;
  std::string* line = nullptr;
  while (std::fgets(text, sizeof(text), pipe) != nullptr) {
    const std::string file = text;
    if (file.compare(0, 2, "0x") == 0) {
      line = &lines[byOffset[std::stoul(file, nullptr, 16)]];
      continue;
    }
    const bool isKernel = file.find("/twin/") == std::string::npos && file.find("??") == std::string::npos &&
                          file.find("/kernel_util.h") == std::string::npos;
    if (line == nullptr || !line->empty() || !isKernel) continue;
    *line = file.substr(file.rfind('/') + 1);
    *line = line->substr(0, line->find_first_of(" \n"));
  }
  pclose(pipe);
  return lines;
}

// Finds the lines of `sites`, which the caller holds the lock for.
void Resolve(Sites& all, const std::vector<Site>& sites) {
  std::set<uintptr_t> addresses;
  for (const Site site : sites) {
    if (all.lines.count(site) != 0) continue;
    for (const uintptr_t address : all.stacks[site]) {
      if (address != 0) addresses.insert(address);
    }
  }
  if (addresses.empty()) return;
  std::map<uintptr_t, std::string> lines = KernelLines(addresses);
  for (const Site site : sites) {
    if (all.lines.count(site) != 0) continue;
    std::string& line = all.lines[site];
    for (const uintptr_t address : all.stacks[site]) {
      if (address != 0 && line.empty()) line = lines[address];
    }
    if (line.empty()) line = "no debug information";
  }
}

}  // namespace

__attribute__((noinline)) Site SiteHere() {
  return NumberOf(Walk(static_cast<const uintptr_t*>(__builtin_frame_address(0))));
}

std::string LineOf(Site site) { return LinesOf({site})[0]; }

std::vector<std::string> LinesOf(const std::vector<Site>& sites) {
  Sites& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  Resolve(all, sites);
  std::vector<std::string> lines;
  for (const Site site : sites) lines.push_back(all.lines[site]);
  return lines;
}

__attribute__((noinline)) bool IsSwitchedOff(const char* kind) {
  thread_local std::unordered_set<Site> noted;
  thread_local uint32_t notedRound = 0;
  if (notedRound != round.load()) {
    noted.clear();
    notedRound = round.load();
  }
  const Site site = NumberOf(Walk(static_cast<const uintptr_t*>(__builtin_frame_address(0))));
  Sites& all = All();
  if (noted.insert(site).second) {
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.passed.emplace(site, kind);
  }
  if (!anyOff.load(std::memory_order_relaxed)) return false;
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (all.offKind != kind) return false;
  Resolve(all, {site});
  return all.lines[site] == all.offLine;
}

}  // namespace check
}  // namespace AscendC

// The places that launches have passed since this was last asked for, as lines "kind file:line".
extern "C" __attribute__((visibility("default"))) const char* mst_check_places() {
  using namespace AscendC::check;  // NOLINT
  static std::string text;
  Sites& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::vector<Site> sites;
  for (const auto& [site, kind] : all.passed) sites.push_back(site);
  Resolve(all, sites);
  std::set<std::string> places;
  for (const auto& [site, kind] : all.passed) places.insert(std::string(kind) + " " + all.lines[site]);
  all.passed.clear();
  ++AscendC::check::round;
  text.clear();
  for (const std::string& place : places) text += place + "\n";
  return text.c_str();
}

// What stands there orders nothing any more, and a buffer is a block smaller; "" and "" switch everything on again.
extern "C" __attribute__((visibility("default"))) void mst_check_switch_off(const char* kind, const char* line) {
  using namespace AscendC::check;  // NOLINT
  Sites& all = All();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.offKind = kind;
  all.offLine = line;
  anyOff.store(*kind != '\0');
}
