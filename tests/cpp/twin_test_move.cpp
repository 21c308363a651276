// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Fills, moves, gathers and indices in UB; copies between global memory and UB.
#include <algorithm>
#include <string>

#include "twin_test.h"

namespace twin_test {
namespace {

// ---- within UB: fills, moves and indices

template <typename T>
void TestMoves(const char* what) {
  TPipe pipe;
  LocalTensor<T> a = Tensor<T>(pipe), d = Tensor<T>(pipe);
  constexpr int kLanes = 256 / static_cast<int>(sizeof(T));
  constexpr int kPerBlock = 32 / static_cast<int>(sizeof(T));
  const T value = Make<T>(3);
  for (int count : kCounts) {
    std::vector<T> ref = Snapshot(d);
    std::fill(ref.begin(), ref.begin() + count, value);
    Duplicate(d, value, count);
    CheckSame(d, ref, what);
  }
  for (int trial = 0; trial < 20; ++trial) {
    const Lanes lanes = DrawLanes(kLanes);
    const bool useBits = trial % 3 == 2;
    uint64_t bits[2] = {lanes.bits[0], lanes.bits[1]};
    const uint8_t blk = Draw({1, 2}), rep = Draw({8, 16}), srcBlk = Draw({1, 0, 2}), srcRep = Draw({8, 0, 9});
    std::vector<T> ref = Snapshot(d);
    const auto each = [&](auto write) {
      for (int r = 0; r < 6; ++r) {
        for (int l = 0; l < kLanes; ++l) {
          if (lanes.Test(useBits, l)) ref[static_cast<size_t>(At<T>(r, l, blk, rep))] = write(r, l);
        }
      }
    };
    each([&](int, int) { return value; });
    if (useBits) {
      Duplicate(d, value, bits, 6, blk, rep);
    } else {
      Duplicate(d, value, lanes.count, 6, blk, rep);
    }
    CheckSame(d, ref, what);
    each([&](int r, int l) { return a.GetPhyAddr()[At<T>(r, l, srcBlk, srcRep)]; });
    if (useBits) {
      Copy(d, a, bits, 6, {blk, srcBlk, rep, srcRep});
    } else {
      Copy(d, a, lanes.count, 6, {blk, srcBlk, rep, srcRep});
    }
    CheckSame(d, ref, what);
  }
  std::vector<T> ref = Snapshot(d);
  for (int i = 0; i < 24; ++i) {
    for (int k = 0; k < kPerBlock; ++k)
      ref[static_cast<size_t>((i / 8 * 17 + i % 8 * 2) * kPerBlock + k)] = a.GetValue(i);
  }
  Brcb(d, a, 3, {2, 17});
  CheckSame(d, ref, "Brcb");

  LocalTensor<uint32_t> offset = Tensor<uint32_t>(pipe, 0, 4000);
  for (uint32_t i = 0; i < kSize; ++i) offset.SetValue(i, offset.GetValue(i) * static_cast<uint32_t>(sizeof(T)));
  ref = Snapshot(d);
  for (uint32_t i = 0; i < 77; ++i) ref[i] = a.GetValue(2 + offset.GetValue(i) / static_cast<uint32_t>(sizeof(T)));
  Gather(d, a, offset, static_cast<uint32_t>(2 * sizeof(T)), 77u);
  CheckSame(d, ref, "Gather");
  for (int r = 0; r < 3; ++r) {
    for (int l = 0; l < kLanes - 5; ++l) {
      ref[static_cast<size_t>(At<T>(r, l, 1, 9))] =
          a.GetValue(offset.GetValue(static_cast<uint32_t>(r * kLanes + l)) / static_cast<uint32_t>(sizeof(T)));
    }
  }
  Gather(d, a, offset, 0u, static_cast<uint64_t>(kLanes - 5), 3, 9);
  CheckSame(d, ref, "Gather strided");

  const char* patterns[] = {"", "10", "01", "1000", "0100", "0010", "0001", "1"};
  for (uint8_t pattern = 1; pattern <= 7; ++pattern) {
    for (uint32_t counter : {0u, 5u, 1000u}) {
      const int64_t lanes = counter == 0 ? kLanes : counter;
      ref = Snapshot(d);
      size_t kept = 0;
      const std::string p = patterns[pattern];
      for (int r = 0; r < 2; ++r) {
        for (int64_t i = 0; i < lanes; ++i) {
          if (p[static_cast<size_t>(i) % p.size()] == '1') ref[kept++] = a.GetPhyAddr()[r * 9 * kPerBlock + i];
        }
      }
      uint64_t count = 0;
      GatherMask(d, a, pattern, counter != 0, counter, {1, 2, 9, 0}, count);
      Check(count == kept, "GatherMask count", pattern);
      CheckSame(d, ref, "GatherMask");
    }
  }
  using Word = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;
  LocalTensor<Word> bits = Tensor<Word>(pipe, 0, 60000);
  ref = Snapshot(d);
  size_t kept = 0;
  for (int r = 0; r < 3; ++r) {
    for (int i = 0; i < kLanes; ++i) {
      const int at = r * kPerBlock + i / (8 * static_cast<int>(sizeof(Word)));
      if ((bits.GetValue(static_cast<uint32_t>(at)) >> (i % (8 * sizeof(Word))) & 1) != 0) {
        ref[kept++] = a.GetPhyAddr()[At<T>(r, i, 2, 16)];
      }
    }
  }
  uint64_t count = 0;
  GatherMask(d, a, bits, false, 0u, {2, 3, 16, 1}, count);
  Check(count == kept, "GatherMask count");
  CheckSame(d, ref, "GatherMask with a tensor");
  ref = Snapshot(d);
  kept = 0;
  for (uint32_t i = 0; i < 300; ++i) {
    const uint32_t at = i / (8 * sizeof(Word));
    if ((bits.GetValue(at) >> (i % (8 * sizeof(Word))) & 1) != 0) ref[kept++] = a.GetPhyAddr()[i];
  }
  GatherMask(d, a, bits, true, 300u, {1, 1, 8, 8}, count);
  Check(count == kept, "GatherMask count beyond 256 bytes");
  CheckSame(d, ref, "GatherMask beyond 256 bytes");
}

template <typename T>
void TestIndex() {
  TPipe pipe;
  LocalTensor<T> d = Tensor<T>(pipe);
  std::vector<T> ref = Snapshot(d);
  for (int i = 0; i < 77; ++i) ref[static_cast<size_t>(i)] = Make<T>(5 + i);
  CreateVecIndex(d, Make<T>(5), 77u);
  CheckSame(d, ref, "CreateVecIndex");
  constexpr int kLanes = 256 / static_cast<int>(sizeof(T));
  for (int r = 0; r < 3; ++r) {
    for (int l = 0; l < kLanes - 3; ++l) ref[static_cast<size_t>(At<T>(r, l, 2, 17))] = Make<T>(r * kLanes + l);
  }
  CreateVecIndex(d, Make<T>(0), static_cast<uint64_t>(kLanes - 3), 3, 2, 17);
  CheckSame(d, ref, "CreateVecIndex strided");
}

// ---- between global memory and UB

template <typename T>
void TestCopiesOf() {
  TPipe pipe;
  LocalTensor<T> l = Tensor<T>(pipe), m = Tensor<T>(pipe);
  std::vector<T> memory(kSize), ref;
  for (T& x : memory) x = Make<T>(static_cast<double>(rng() % 100));
  GlobalTensor<T> g;
  g.SetGlobalBuffer(memory.data(), kSize);
  constexpr int kPerBlock = 32 / static_cast<int>(sizeof(T));

  ref = Snapshot(l);
  std::copy_n(memory.begin() + 3, 128, ref.begin());
  DataCopy(l, g[3], 128);
  CheckSame(l, ref, "DataCopy in");
  for (int b = 0; b < 3; ++b) {
    for (int i = 0; i < 2 * kPerBlock; ++i) {
      ref[static_cast<size_t>(b * 6 * kPerBlock + i)] = memory[static_cast<size_t>(b * 3 * kPerBlock + i)];
    }
  }
  DataCopy(l, g, DataCopyParams(3, 2, 1, 4));
  CheckSame(l, ref, "DataCopy in, strided");
  ref = Snapshot(m);
  for (int b = 0; b < 3; ++b) {
    for (int i = 0; i < 2 * kPerBlock; ++i) {
      ref[static_cast<size_t>(b * 3 * kPerBlock + i)] = l.GetPhyAddr()[b * 6 * kPerBlock + i];
    }
  }
  DataCopy(m, l, DataCopyParams(3, 2, 4, 1));
  CheckSame(m, ref, "DataCopy within UB, strided");

  for (uint32_t n : {1u, 5u, 16u, 33u}) {
    for (int pad = 0; pad < 2; ++pad) {
      const uint8_t left = static_cast<uint8_t>(pad ? 2 : 0), right = static_cast<uint8_t>(pad ? 1 : 0);
      const uint32_t bytes = n * sizeof(T);
      const uint32_t padded = (bytes + (left + right) * static_cast<uint32_t>(sizeof(T)) + 31) / 32 * 32 / sizeof(T);
      const T value = Make<T>(7);
      ref = Snapshot(l);
      for (uint32_t b = 0; b < 3; ++b) {
        const T* s = memory.data() + 1 + b * (n + 2);
        T* d = ref.data() + b * (padded + 2 * kPerBlock);
        for (uint32_t i = 0; i < padded; ++i) {
          const bool inside = i >= left && i < left + n;
          d[i] = inside ? s[i - left] : pad ? value : s[0];
        }
      }
      DataCopyPad(l, g[1], DataCopyExtParams(3, bytes, 2 * sizeof(T), 2, 0),
                  DataCopyPadExtParams<T>(pad != 0, left, right, value));
      CheckSame(l, ref, "DataCopyPad in");
    }
    const uint32_t bytes = n * sizeof(T), step = (bytes + 31) / 32 * 32 / sizeof(T) + kPerBlock;
    std::vector<T> want = memory;
    for (uint32_t b = 0; b < 3; ++b) {
      for (uint32_t i = 0; i < n; ++i) want[5 + b * (n + 1) + i] = m.GetValue(b * step + i);
    }
    DataCopyPad(g[5], m, DataCopyExtParams(3, bytes, 1, sizeof(T), 0));
    Check(std::memcmp(want.data(), memory.data(), kSize * sizeof(T)) == 0, "DataCopyPad out", n);
  }
  std::vector<T> want = memory;
  for (int i = 0; i < 64; ++i) want[static_cast<size_t>(7 + i)] = m.GetValue(i);
  DataCopy(g[7], m, 64);
  Check(std::memcmp(want.data(), memory.data(), kSize * sizeof(T)) == 0, "DataCopy out");
  if constexpr (std::is_same_v<T, float>) {
    SetAtomicAdd<float>();
    for (int i = 0; i < 64; ++i) want[static_cast<size_t>(7 + i)] += m.GetValue(i);
    DataCopy(g[7], m, 64);
    for (int i = 0; i < 3; ++i) want[static_cast<size_t>(2 + i)] += m.GetValue(i);
    DataCopyPad(g[2], m, DataCopyExtParams(1, 12, 0, 0, 0));
    SetAtomicNone();
    Check(want == memory, "atomic add");
  }
}

}  // namespace

void TestFillsAndMoves() {
  TestMoves<float>("moves of float");
  TestMoves<half>("moves of half");
  TestMoves<bfloat16_t>("moves of bfloat16");
  TestMoves<int32_t>("moves of int32");
  TestMoves<int16_t>("moves of int16");
  TestIndex<float>();
  TestIndex<half>();
  TestIndex<int32_t>();
  TestIndex<int16_t>();
}

void TestCopies() {
  TestCopiesOf<float>();
  TestCopiesOf<half>();
  TestCopiesOf<int32_t>();
  TestCopiesOf<int64_t>();
  TestCopiesOf<uint8_t>();
}

}  // namespace twin_test
