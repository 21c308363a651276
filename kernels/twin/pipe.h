// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// TPipe, queues and buffers: who gets which piece of local memory, and in which order tiles move on.
#ifndef MST_TWIN_PIPE_H_
#define MST_TWIN_PIPE_H_

#include "check.h"
#include "runtime.h"
#include "tensor.h"
#include "vector.h"

namespace AscendC {

namespace detail {

// An L1 buffer may hold operands that the Matmul has rearranged for the CPU: kL1HeaderBytes before it describe what it
// holds (zero: nothing yet), and it has room for fp32 copies of 16-bit elements plus padding.
constexpr size_t kL1HeaderBytes = 256;
constexpr size_t L1Room(size_t bytes) { return 2 * bytes + 64 * 1024; }

inline uint8_t* AllocLocal(TPosition position, size_t bytes) {
  if (!IsL1(position)) return mst::ThisCore().ub.Alloc(bytes);
  uint8_t* memory = mst::ThisCore().l1.Alloc(kL1HeaderBytes + L1Room(bytes));
  std::memset(memory, 0, kL1HeaderBytes);
  return memory + kL1HeaderBytes;
}

}  // namespace detail

class TPipe;

// `num` equal buffers that circulate: AllocTensor takes a free one, EnQue and DeQue pass them on first in first out,
// FreeTensor gives one back.
template <TPosition src, TPosition dst, int32_t depth, auto mask = 0>
class TQueBind {
  static_assert(depth > 0, "CANN's generations do different things with a queue without depth");

 public:
  TQueBind() = default;

  template <typename T>
  LocalTensor<T> AllocTensor() {
    if (free_ == 0) mst::KernelError("AllocTensor: no free buffer in the queue");
    // Round robin, as on the card: the buffer given back longest ago comes first.
    uint32_t index = cursor_;
    while ((free_ >> index & 1u) == 0) index = index + 1 == num_ ? 0 : index + 1;
    cursor_ = index + 1 == num_ ? 0 : index + 1;
    free_ &= ~(1u << index);
    check::QueueAlloc(BufferAt(index), src, dst);
    return TensorAt<T>(index);
  }
  template <typename T>
  void FreeTensor(LocalTensor<T>& tensor) {
    const uint32_t index = IndexOf(detail::Inside::Buffer(tensor));
    check::QueueFree(BufferAt(index), src, dst);
    free_ |= 1u << index;
  }
  template <typename T>
  bool EnQue(const LocalTensor<T>& tensor) {
    return EnQue<src, dst, T>(tensor);
  }
  template <TPosition srcUserPos, TPosition dstUserPos, typename T>
  bool EnQue(const LocalTensor<T>& tensor) {
    const uint32_t index = IndexOf(detail::Inside::Buffer(tensor));
    if (queued_ == depth) mst::KernelError("EnQue: more tensors than the queue is deep");
    fifo_[(head_ + queued_) % kMaxBuffers] = static_cast<uint8_t>(index);
    ++queued_;
    check::QueueEnQue(BufferAt(index), srcUserPos, dstUserPos);
    return true;
  }
  template <typename T>
  LocalTensor<T> DeQue() {
    return DeQue<src, dst, T>();
  }
  template <TPosition srcUserPos, TPosition dstUserPos, typename T>
  LocalTensor<T> DeQue() {
    if (queued_ == 0) mst::KernelError("DeQue: the queue is empty");
    const uint32_t index = fifo_[head_];
    head_ = (head_ + 1) % kMaxBuffers;
    --queued_;
    check::QueueDeQue(BufferAt(index), srcUserPos, dstUserPos);
    return TensorAt<T>(index);
  }
  bool VacantInQue() { return static_cast<int32_t>(queued_) < depth; }
  bool HasTensorInQue() { return queued_ != 0; }
  int32_t GetTensorCountInQue() { return static_cast<int32_t>(queued_); }
  bool HasIdleBuffer() { return free_ != 0; }
  void FreeAllEvent() {}

 protected:
  // Where the buffers lie: a queue that leads to global memory holds its source side.
  static constexpr TPosition kPosition = dst == TPosition::GM || dst == TPosition::CO2 ? src : dst;
  static constexpr uint32_t kMaxBuffers = 16;

  void Init(uint32_t num, uint32_t bytes) {
    if (num == 0 || num > kMaxBuffers) mst::KernelError("InitBuffer: a queue has 1 to 16 buffers");
    num_ = num;
    bytes_ = (bytes + ONE_BLK_SIZE - 1) / ONE_BLK_SIZE * ONE_BLK_SIZE;
    free_ = (1u << num) - 1;
    cursor_ = head_ = queued_ = 0;
    for (uint32_t i = 0; i < num; ++i) {
      buffers_[i] = detail::AllocLocal(kPosition, bytes_);
      check::NewBuffer(this, kPosition, buffers_[i], bytes_);
    }
  }
  uint8_t* BufferAt(uint32_t index) const { return buffers_[index]; }
  template <typename T>
  LocalTensor<T> TensorAt(uint32_t index) const {
    return detail::Inside::Tensor<T>(kPosition, buffers_[index], buffers_[index],
                                     static_cast<uint32_t>(bytes_ / sizeof(T)));
  }
  uint32_t IndexOf(const uint8_t* buffer) const {
    for (uint32_t i = 0; i < num_; ++i) {
      if (buffers_[i] == buffer) return i;
    }
    mst::KernelError("the tensor does not belong to this queue");
  }

  friend class TPipe;
  uint8_t* buffers_[kMaxBuffers] = {};
  uint8_t fifo_[kMaxBuffers] = {};  // indices of queued buffers, from head_
  uint32_t num_ = 0;
  uint32_t bytes_ = 0;   // of one buffer
  uint32_t free_ = 0;    // bit per buffer
  uint32_t cursor_ = 0;  // where the search for a free buffer begins
  uint32_t head_ = 0;
  uint32_t queued_ = 0;
};

template <TPosition pos, int32_t depth, auto mask = 0>
class TQue : public TQueBind<pos == TPosition::VECOUT || pos == TPosition::CO2 ? pos : TPosition::GM,
                             pos == TPosition::VECOUT || pos == TPosition::CO2 ? TPosition::GM : pos, depth, mask> {};

template <TPosition pos, int32_t depth = 1, auto mask = 0>
using TSCM = TQueBind<pos, TPosition::TSCM, depth, mask>;

template <TPosition pos = TPosition::LCM>
class TBuf {
 public:
  TBuf() = default;

  template <typename T>
  LocalTensor<T> Get() {
    return Get<T>(static_cast<uint32_t>(bytes_ / sizeof(T)));
  }
  template <typename T>
  LocalTensor<T> Get(uint32_t len) {
    return detail::Inside::Tensor<T>(pos, buffer_, buffer_, len);
  }
  template <typename T>
  LocalTensor<T> GetWithOffset(uint32_t size, uint32_t bufOffset) {
    return detail::Inside::Tensor<T>(pos, buffer_ + bufOffset, buffer_, size);
  }

 private:
  friend class TPipe;
  uint8_t* buffer_ = nullptr;
  uint32_t bytes_ = 0;
};

// Owner of the core's local memory while it lives.
class TPipe {
 public:
  TPipe() { Init(); }
  ~TPipe() noexcept(false) { Destroy(); }  // the checked build throws what is left over
  TPipe(const TPipe&) = delete;
  TPipe& operator=(const TPipe&) = delete;

  void Init() {
    mst::CoreContext& core = mst::ThisCore();
    core.ub.Reset();
    core.l1.Reset();
    core.pipe = this;
    check::PipeBegin();
  }
  void Destroy() {
    if (mst::ThisCore().pipe != this) return;
    check::PipeEnd();
    detail::StreamFence();
    mst::ThisCore().pipe = nullptr;
  }
  void Reset() {
    Destroy();
    Init();
  }

  template <class T>
  bool InitBuffer(T& que, uint8_t num, uint32_t len) {
    que.Init(num, len);
    return true;
  }
  template <TPosition pos>
  bool InitBuffer(TBuf<pos>& buf, uint32_t len) {
    buf.bytes_ = (len + ONE_BLK_SIZE - 1) / ONE_BLK_SIZE * ONE_BLK_SIZE;
    buf.buffer_ = detail::AllocLocal(pos, buf.bytes_);
    check::NewBuffer(nullptr, pos, buf.buffer_, buf.bytes_);
    return true;
  }

  template <HardEvent evt>
  TEventID AllocEventID() {
    const TEventID id = FetchEventID<evt>();
    events_[static_cast<int>(evt)] |= static_cast<uint8_t>(1u << id);
    return id;
  }
  template <HardEvent evt>
  void ReleaseEventID(TEventID id) {
    events_[static_cast<int>(evt)] &= static_cast<uint8_t>(~(1u << id));
  }
  template <HardEvent evt>
  TEventID FetchEventID() {
    return FetchEventID(evt);
  }
  TEventID FetchEventID(HardEvent evt) {
    const uint8_t used = events_[static_cast<int>(evt)];
    if (used == 0xff) mst::KernelError("FetchEventID: all eight event ids are in use");
    return static_cast<TEventID>(__builtin_ctz(~static_cast<uint32_t>(used)));
  }

 private:
  uint8_t events_[static_cast<int>(HardEvent::MAX)] = {};  // bit per event id in use
};

}  // namespace AscendC

inline AscendC::TPipe* GetTPipePtr() { return static_cast<AscendC::TPipe*>(mst::ThisCore().pipe); }

#endif  // MST_TWIN_PIPE_H_
