// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// The fast twin against scalar loops: every instruction in its count, strided and bit-mask form, conversions over all
// values, queues and the thread pool; one part per group of instructions. Prints "N passed, 0 failed".
#include "twin_test.h"

#include <cstdio>
#include <string>

// --no-fork: for emulators that cannot fork a process with threads.
int main(int argc, char** argv) {
  const bool withFork = argc < 2 || std::string(argv[1]) != "--no-fork";
  twin_test::TestBinaries();
  twin_test::TestUnaries();
  twin_test::TestCasts();
  twin_test::TestFillsAndMoves();
  twin_test::TestSelects();
  twin_test::TestReductions();
  twin_test::TestSorts();
  twin_test::TestCopies();
  twin_test::TestQueues();
  twin_test::TestCrossCoreFlags();
  twin_test::TestPool(withFork);
  std::printf("%d passed, %d failed\n", twin_test::passed, twin_test::failed);
  return twin_test::failed == 0 ? 0 : 1;
}
