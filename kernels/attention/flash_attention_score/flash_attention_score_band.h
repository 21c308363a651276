// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Which keys a query row sees by sparse_mode, pre_tokens, next_tokens and prefix; for host and device.
//
// Key j of row i is visible when j < keys and (i + first <= j <= i + last or j < prefix).
#ifndef MST_ATTENTION_FLASH_ATTENTION_SCORE_BAND_H_
#define MST_ATTENTION_FLASH_ATTENTION_SCORE_BAND_H_

#include "attention/flash_attention_score/flash_attention_score_tiling.h"

#ifndef __aicore__  // the host compiler has one kind of function
#define MST_BAND_FN inline
#else
#define MST_BAND_FN __aicore__ inline
#endif

namespace mst {

struct FlashBand {
  int64_t first;
  int64_t last;
  int64_t prefix;
  int64_t keys;
};

enum class FlashTileView : int32_t { kHidden, kPartial, kVisible };

constexpr int64_t kFlashFar = int64_t{1} << 40;  // further than any key

// `sequence`: index in the batch; `rows`, `keys`: its lengths.
MST_BAND_FN FlashBand FlashBandOf(const FlashAttentionScoreShape& shape, int64_t sequence, int64_t rows, int64_t keys,
                                  int64_t prefix) {
  FlashBand band = {-kFlashFar, kFlashFar, 0, keys};
  const int64_t corner = keys - rows;  // diagonal that ends in the last row and key
  int32_t mode = shape.sparseMode;
  if (mode == 7 || mode == 8) mode = sequence == shape.bandSequence ? 4 : mode == 7 ? 3 : 2;
  if (mode == 0 && shape.hasMask != 0) {
    band.first = -shape.preTokens;
    band.last = shape.nextTokens;
  } else if (mode == 2) {
    band.last = 0;
  } else if (mode == 3) {
    band.last = corner;
  } else if (mode == 4) {
    band.first = corner - shape.preTokens;
    band.last = corner + shape.nextTokens;
  } else if (mode == 5 || mode == 6) {
    band.last = corner;
    band.prefix = prefix < keys ? prefix : keys;
  }
  return band;
}

// The keys [begin, end) outside which no row of [rowBegin, rowEnd) sees any.
MST_BAND_FN int64_t FlashKeyBegin(const FlashBand& band, int64_t rowBegin) {
  if (band.prefix > 0 || rowBegin + band.first < 0) return 0;
  return rowBegin + band.first;
}

MST_BAND_FN int64_t FlashKeyEnd(const FlashBand& band, int64_t rowEnd) {
  const int64_t end = rowEnd + band.last > band.prefix ? rowEnd + band.last : band.prefix;
  return end < band.keys ? end : band.keys;
}

// How much of rows [rowBegin, rowEnd) x keys [keyBegin, keyEnd) is visible.
MST_BAND_FN FlashTileView FlashViewOf(const FlashBand& band, int64_t rowBegin, int64_t rowEnd, int64_t keyBegin,
                                      int64_t keyEnd) {
  if (keyBegin >= band.keys) return FlashTileView::kHidden;
  if (keyEnd <= band.prefix) return FlashTileView::kVisible;
  const bool left = keyEnd - 1 < rowBegin + band.first;
  const bool right = keyBegin > rowEnd - 1 + band.last;
  if ((left || right) && keyBegin >= band.prefix) return FlashTileView::kHidden;
  const bool all = keyEnd <= band.keys && rowEnd - 1 + band.first <= keyBegin && keyEnd - 1 <= rowBegin + band.last;
  return all ? FlashTileView::kVisible : FlashTileView::kPartial;
}

}  // namespace mst

#undef MST_BAND_FN

#endif  // MST_ATTENTION_FLASH_ATTENTION_SCORE_BAND_H_
