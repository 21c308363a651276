// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// The pipes of a cube core, and how an IterateAll goes through them by its tiling: GM to L1, L1 to L0A and L0B, Mmad,
// L0C to GM. A pipe waits for a free buffer as depthA1, depthB1, dbL0A, dbL0B and dbL0C say.
#ifndef MST_TWIN_CHECKED_CUBE_H_
#define MST_TWIN_CHECKED_CUBE_H_

#include <cstdint>

#include "trace.h"

namespace AscendC {
namespace check {

struct CubePipe {
  double free = 0;  // when its next instruction may begin
  double busy = 0;
  int64_t count = 0;
  int64_t bytes = 0;

  // An instruction that may begin at `ready`: when it ends.
  double Run(double ready, double cycles, int64_t moved);
};

struct CubeCore {
  CubePipe mte2, mte1, m, fix;

  // Both return when the result is there.
  double Load(double ready, int64_t bytes);
  double Multiply(double ready, const Product& product);
};

// Cycles for a product at the cube's peak rate.
double PeakCycles(const Product& product);

}  // namespace check
}  // namespace AscendC

#endif  // MST_TWIN_CHECKED_CUBE_H_
