// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Runs the wrong kernels and compares what the checked twin says of them.
#include "wrong_kernels.h"

#include <cstdio>
#include <stdexcept>
#include <string>

#include "common/cpu_entry.h"

extern "C" void mst_launch_begin(const mst::Platform* platform, const mst::GmBuffer* buffers, int count);

namespace wrong {

std::vector<float> xData(kFloats, 1.0f), yData(kFloats, 0.0f);
int line;

namespace {

void RunKernel(void* context, int /*core*/) {
  Fixture fixture;
  static_cast<const Case*>(context)->kernel(fixture);
}

// The text of the violation, or "" without one.
std::string Run(const Case& c) {
  const mst::GmBuffer buffers[] = {{"x", xData.data(), kFloats * 4, mst::GmRole::kInput},
                                   {"y", yData.data(), kFloats * 4, mst::GmRole::kOutput}};
  mst_launch_begin(mst::FindPlatform("ascend910b1"), buffers, 2);
  try {
    (c.inGroups ? mst::LaunchGroups : mst::LaunchKernel)(c.cores, RunKernel, const_cast<Case*>(&c));
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

bool Check(const Case& c, const std::string& file) {
  line = 0;
  const std::string text = Run(c);
  bool ok = text.empty() == c.fragments.empty();
  for (const char* fragment : c.fragments) ok = ok && text.find(fragment) != std::string::npos;
  if (c.hasLine) ok = ok && text.find(file + ":" + std::to_string(line)) != std::string::npos;
  if (!ok) std::printf("FAILED %s: '%s' (line %d)\n", c.name, text.c_str(), line);
  return ok;
}

}  // namespace
}  // namespace wrong

int main() {
  using namespace wrong;   // NOLINT: the one user
  mst::SetPoolThreads(6);  // the cores of a case run at once
  int passed = 0, failed = 0;
  for (const Case& c : kLimits) (Check(c, "wrong_kernels_limits.cpp") ? passed : failed) += 1;
  for (const Case& c : kOrder) (Check(c, "wrong_kernels_order.cpp") ? passed : failed) += 1;
  for (const Case& c : kCross) (Check(c, "wrong_kernels_cross.cpp") ? passed : failed) += 1;
  for (const Case& c : kValues) (Check(c, "wrong_kernels_values.cpp") ? passed : failed) += 1;
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
