// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Which bytes an operand of an instruction covers.
#ifndef MST_TWIN_CHECKED_FOOTPRINT_H_
#define MST_TWIN_CHECKED_FOOTPRINT_H_

#include "check.h"
#include "shadow.h"

namespace AscendC {
namespace check {

constexpr int64_t kBlock = ONE_BLK_SIZE;

// Bytes from the operand's address to the end of what it covers.
int64_t ExtentOf(const Operand& operand, const Range& range);

// Bytes that adjoin, and the lanes that they hold; a repeat has 128 of them, of which a wide type uses fewer. Of a copy
// the lanes are bytes.
struct Piece {
  int64_t lane;
  Span span;
};
void PiecesOf(const Operand& operand, const Range& range, uint64_t base, std::vector<Piece>* pieces);

// The bytes, counted from `base`.
void SpansOf(const Operand& operand, const Range& range, uint64_t base, Spans* spans);

// Puts spans in order and joins those that touch.
void SortAndMerge(Spans* spans);

}  // namespace check
}  // namespace AscendC

#endif  // MST_TWIN_CHECKED_FOOTPRINT_H_
