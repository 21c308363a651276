// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
// What a check or a tiling function answers: success, or the text that the user reads.
#ifndef MST_COMMON_STATUS_H_
#define MST_COMMON_STATUS_H_

#include <string>
#include <utility>

namespace mst {

class Status {
 public:
  enum class Kind { kOk, kTypeError, kValueError };  // become TypeError and ValueError in Python

  static Status Ok() { return Status(Kind::kOk, ""); }
  static Status TypeError(std::string text) { return Status(Kind::kTypeError, std::move(text)); }
  static Status ValueError(std::string text) { return Status(Kind::kValueError, std::move(text)); }

  bool ok() const { return kind_ == Kind::kOk; }
  Kind kind() const { return kind_; }
  const std::string& text() const { return text_; }

 private:
  Status(Kind kind, std::string text) : kind_(kind), text_(std::move(text)) {}

  Kind kind_;
  std::string text_;
};

}  // namespace mst

#define MST_RETURN_IF_ERROR(expr)              \
  do {                                         \
    ::mst::Status mst_status_ = (expr);        \
    if (!mst_status_.ok()) return mst_status_; \
  } while (0)

#endif  // MST_COMMON_STATUS_H_
