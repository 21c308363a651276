// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "kernel_line.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <cstdint>
#include <cstdio>

std::string KernelLine() {
  constexpr int kFrames = 32;
  void* frames[kFrames];
  const int count = backtrace(frames, kFrames);
  Dl_info own;
  if (dladdr(reinterpret_cast<void*>(&KernelLine), &own) == 0) return "unknown line";
  char text[64];
  std::string command = std::string("addr2line -i -e '") + own.dli_fname + "'";
  for (int i = 0; i < count; ++i) {
    Dl_info info;
    if (dladdr(frames[i], &info) == 0 || info.dli_fbase != own.dli_fbase) continue;
    // The call lies just before the address it returns to.
    const uintptr_t offset = reinterpret_cast<uintptr_t>(frames[i]) - reinterpret_cast<uintptr_t>(own.dli_fbase) - 1;
    std::snprintf(text, sizeof(text), " %#lx", static_cast<unsigned long>(offset));
    command += text;
  }
  std::string found;
  if (FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r")) {
    char line[1024];
    while (std::fgets(line, sizeof(line), pipe) != nullptr) {
      const std::string file = line;
      const bool isKernel = file.find("/twin/") == std::string::npos && file.find("??") == std::string::npos;
      if (!found.empty() || !isKernel) continue;
      found = file.substr(file.rfind('/') + 1);
      found = found.substr(0, found.find_first_of(" \n"));
    }
    pclose(pipe);
  }
  return found.empty() ? "no debug information" : found;
}
