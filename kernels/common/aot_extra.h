// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// The classes through which MindSpore hands attributes to an aot operator. A mirror of MindSpore's AotKernelData and
// AotExtra (Apache-2.0, see NOTICE): same virtual table and layout, without the headers behind them. Needs
// -D_GLIBCXX_USE_CXX11_ABI=0, since std::string crosses the border.
#ifndef MST_COMMON_AOT_EXTRA_H_
#define MST_COMMON_AOT_EXTRA_H_

#include <cstdint>
#include <string>
#include <vector>

namespace mindspore {

class AotKernelData {
 public:
  AotKernelData() = default;
  virtual ~AotKernelData() = default;
};

class AotExtra {
 public:
  AotExtra() = default;
  virtual ~AotExtra() = default;
  virtual bool HasAttr(std::string name) = 0;

  template <typename T>
  inline T Attr(std::string name) {
    return T();
  }
  void SetKernelData(AotKernelData* data) { kernel_data_ = data; }
  AotKernelData* KernelData() const { return kernel_data_; }

 private:
  virtual bool GetAttrBool(std::string name) = 0;
  virtual int64_t GetAttrInt(std::string name) = 0;
  virtual float GetAttrFloat(std::string name) = 0;
  virtual std::string GetAttrStr(std::string name) = 0;
  virtual std::vector<int64_t> GetAttrIntVec(std::string name) = 0;
  virtual std::vector<float> GetAttrFloatVec(std::string name) = 0;
  virtual std::vector<std::vector<int64_t>> GetAttrInt2DVec(std::string name) = 0;
  virtual std::vector<std::vector<float>> GetAttrFloat2DVec(std::string name) = 0;

  std::vector<size_t> workspace_;
  AotKernelData* kernel_data_{nullptr};
};

template <>
inline bool AotExtra::Attr(std::string name) {
  return GetAttrBool(name);
}
template <>
inline int64_t AotExtra::Attr(std::string name) {
  return GetAttrInt(name);
}
template <>
inline float AotExtra::Attr(std::string name) {
  return GetAttrFloat(name);
}
template <>
inline std::string AotExtra::Attr(std::string name) {
  return GetAttrStr(name);
}

}  // namespace mindspore

using mindspore::AotExtra;
using mindspore::AotKernelData;

#endif  // MST_COMMON_AOT_EXTRA_H_
