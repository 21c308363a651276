// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// Sorting by score, descending, where equal scores keep their order. A record is 8 bytes: the score (float, or half and
// 2 unused bytes) and a uint32 index.
#ifndef MST_TWIN_SORT_H_
#define MST_TWIN_SORT_H_

#include "check.h"
#include "tensor.h"

namespace AscendC {

constexpr uint8_t MRG_SORT_ELEMENT_LEN = 4;

struct MrgSort4Info {
  MrgSort4Info() {}
  MrgSort4Info(const uint16_t elementLengthsIn[MRG_SORT_ELEMENT_LEN], const bool ifExhaustedSuspensionIn,
               const uint16_t validBitIn, const uint16_t repeatTimesIn)
      : ifExhaustedSuspension(ifExhaustedSuspensionIn),
        validBit(validBitIn),
        repeatTimes(static_cast<uint8_t>(repeatTimesIn)) {
    for (int32_t i = 0; i < MRG_SORT_ELEMENT_LEN; ++i) elementLengths[i] = elementLengthsIn[i];
  }

  uint16_t elementLengths[MRG_SORT_ELEMENT_LEN] = {0};  // records
  bool ifExhaustedSuspension = false;                   // stop as soon as one list is used up
  uint16_t validBit = 0;                                // 3, 7 or 15: the first 2, 3 or 4 lists take part
  uint8_t repeatTimes = 1;
};

template <typename T>
struct MrgSortSrcList {
  MrgSortSrcList() {}
  MrgSortSrcList(const LocalTensor<T>& src1In, const LocalTensor<T>& src2In, const LocalTensor<T>& src3In,
                 const LocalTensor<T>& src4In)
      : src1(src1In), src2(src2In), src3(src3In), src4(src4In) {}

  LocalTensor<T> src1;
  LocalTensor<T> src2;
  LocalTensor<T> src3;
  LocalTensor<T> src4;
};

namespace detail {

template <typename T>
void Sort32Run(uint64_t* dst, const T* scores, const uint32_t* indices, int repeat);
// Merges the lists of `lengths` records; consumed[i] becomes the number taken from list i.
template <typename T>
void MergeRecords(uint64_t* dst, const uint64_t* const* lists, const uint16_t* lengths, uint16_t validBit,
                  bool stopWhenOneEnds, uint16_t* consumed);
template <typename T>
void ExtractRun(T* values, uint32_t* indices, const uint64_t* records, int64_t count);

// What GetMrgSortResult reads: the counts of the last MrgSort of this core.
struct MergeResult {
  uint16_t consumed[MRG_SORT_ELEMENT_LEN] = {};
};
MergeResult& LastMerge();

template <typename T>
constexpr int64_t kRecordElements = 8 / static_cast<int64_t>(sizeof(T));

}  // namespace detail

// Each 32 elements become 32 sorted records.
template <typename T>
__aicore__ inline void Sort32(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<uint32_t>& src1,
                              const int32_t repeatTime) {
  static_assert(detail::kIsFloatOrHalf<T>, "the 910B sorts float and half");
  const int64_t count = INT64_C(32) * repeatTime;
  check::Issue(
      PIPE_V, "Sort32", check::Count(count),
      [=] {
        detail::Sort32Run<T>(reinterpret_cast<uint64_t*>(dst.GetPhyAddr()), src0.GetPhyAddr(), src1.GetPhyAddr(),
                             repeatTime);
      },
      check::OutRun(dst, count * detail::kRecordElements<T>), check::InRun(src0, count), check::InRun(src1, count));
}

// Repeats (with four equal lists that adjoin) merge the next four lists into the next records of dst.
template <typename T>
__aicore__ inline void MrgSort(const LocalTensor<T>& dst, const MrgSortSrcList<T>& src, const MrgSort4Info& params) {
  static_assert(detail::kIsFloatOrHalf<T>, "the 910B sorts float and half");
  const MrgSort4Info info = params;
  const MrgSortSrcList<T> lists = src;
  const auto length = [&info](int i) {
    return (info.validBit >> i & 1) != 0 ? info.elementLengths[i] * int64_t{info.repeatTimes} : int64_t{0};
  };
  constexpr int64_t kWidth = detail::kRecordElements<T>;
  check::Issue(
      PIPE_V, "MrgSort", check::Count(length(0) + length(1) + length(2) + length(3)),
      [=] {
        uint64_t* out = reinterpret_cast<uint64_t*>(dst.GetPhyAddr());
        const uint64_t* in[MRG_SORT_ELEMENT_LEN] = {reinterpret_cast<const uint64_t*>(lists.src1.GetPhyAddr()),
                                                    reinterpret_cast<const uint64_t*>(lists.src2.GetPhyAddr()),
                                                    reinterpret_cast<const uint64_t*>(lists.src3.GetPhyAddr()),
                                                    reinterpret_cast<const uint64_t*>(lists.src4.GetPhyAddr())};
        const int64_t total = INT64_C(0) + info.elementLengths[0] + info.elementLengths[1] + info.elementLengths[2] +
                              info.elementLengths[3];
        for (int r = 0; r < info.repeatTimes; ++r) {
          detail::MergeRecords<T>(out, in, info.elementLengths, info.validBit, info.ifExhaustedSuspension,
                                  detail::LastMerge().consumed);
          out += total;
          for (const uint64_t*& list : in) list += total;
        }
      },
      check::OutRun(dst, (length(0) + length(1) + length(2) + length(3)) * kWidth),
      check::InRun(lists.src1, length(0) * kWidth), check::InRun(lists.src2, length(1) * kWidth),
      check::InRun(lists.src3, length(2) * kWidth), check::InRun(lists.src4, length(3) * kWidth));
}

__aicore__ inline void GetMrgSortResult(uint16_t& mrgSortList1, uint16_t& mrgSortList2, uint16_t& mrgSortList3,
                                        uint16_t& mrgSortList4) {
  const detail::MergeResult& result = detail::LastMerge();
  mrgSortList1 = result.consumed[0];
  mrgSortList2 = result.consumed[1];
  mrgSortList3 = result.consumed[2];
  mrgSortList4 = result.consumed[3];
}

// Splits 32 * repeatTime records into scores and indices.
template <typename T>
__aicore__ inline void Extract(const LocalTensor<T>& dstValue, const LocalTensor<uint32_t>& dstIndex,
                               const LocalTensor<T>& sorted, const int32_t repeatTime) {
  static_assert(detail::kIsFloatOrHalf<T>, "the 910B sorts float and half");
  const int64_t count = INT64_C(32) * repeatTime;
  check::Issue(
      PIPE_V, "Extract", check::Count(count),
      [=] {
        detail::ExtractRun<T>(dstValue.GetPhyAddr(), dstIndex.GetPhyAddr(),
                              reinterpret_cast<const uint64_t*>(sorted.GetPhyAddr()), count);
      },
      check::OutRun(dstValue, count), check::OutRun(dstIndex, count),
      check::InRun(sorted, count * detail::kRecordElements<T>));
}

}  // namespace AscendC

#endif  // MST_TWIN_SORT_H_
