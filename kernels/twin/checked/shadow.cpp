// Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
#include "shadow.h"

#include <algorithm>

namespace AscendC {
namespace check {
namespace {

bool Same(const Clock& a, const Clock& b) {
  for (int lane = 0; lane < kLanes; ++lane) {
    if (a[lane] != b[lane]) return false;
  }
  return true;
}

bool SameHistory(const Segment& a, const Segment& b) {
  return a.touched == b.touched && a.defined == b.defined && Same(a.read, b.read) && Same(a.write, b.write) &&
         Same(a.add, b.add);
}

// Appends to a list of adjoining segments.
void Append(std::vector<Segment>* list, const Segment& segment, int64_t begin, int64_t end) {
  if (begin >= end) return;
  if (!list->empty() && SameHistory(list->back(), segment)) {
    list->back().span.end = end;
    return;
  }
  list->push_back(segment);
  list->back().span = {begin, end};
}

}  // namespace

void Shadow::Reset(int64_t bytes, bool defined) {
  segments_.clear();
  if (bytes > 0) segments_.push_back({{0, bytes}, {}, {}, {}, 0, defined});
}

size_t Shadow::FirstAt(int64_t begin) const {
  return static_cast<size_t>(std::upper_bound(segments_.begin(), segments_.end(), begin,
                                              [](int64_t at, const Segment& s) { return at < s.span.end; }) -
                             segments_.begin());
}

bool Shadow::FindConflict(const Spans& spans, Touch touch, const Clock& known, Conflict* conflict) {
  metUndefined_ = false;
  if (spans.empty()) return false;
  const auto isOpen = [&](const Clock& last, const Segment& segment, const Span& span, bool wrote) {
    for (int lane = 0; lane < kLanes; ++lane) {
      if (last[lane] <= known[lane]) continue;
      *conflict = {{std::max(segment.span.begin, span.begin), std::min(segment.span.end, span.end)},
                   static_cast<Lane>(lane),
                   last[lane],
                   wrote};
      return true;
    }
    return false;
  };
  size_t at = FirstAt(spans[0].begin);
  for (const Span& span : spans) {
    while (segments_[at].span.end <= span.begin) ++at;
    for (size_t i = at; i < segments_.size() && segments_[i].span.begin < span.end; ++i) {
      const Segment& segment = segments_[i];
      metUndefined_ = metUndefined_ || !segment.defined;
      if (isOpen(segment.write, segment, span, true)) return true;
      if (touch != kTouchAdd && isOpen(segment.add, segment, span, true)) return true;
      if (touch != kTouchRead && isOpen(segment.read, segment, span, false)) return true;
    }
  }
  return false;
}

void Shadow::Note(const Spans& spans, Touch touch, Lane lane, uint32_t number) {
  if (spans.empty()) return;
  Update(spans, [=](Segment* s) {
    s->touched = static_cast<uint8_t>(s->touched | touch);
    if (touch == kTouchRead) {
      s->read[lane] = number;
    } else if (touch == kTouchAdd) {
      s->add[lane] = number;
    } else {  // what is before this write is before all that comes after it
      s->write = s->add = s->read = {};
      s->write[lane] = number;
      s->defined = true;
    }
  });
}

template <typename Change>
void Shadow::Update(const Spans& spans, const Change& change) {
  const size_t first = FirstAt(spans.front().begin);
  if (spans.size() == 1 && segments_[first].span.begin == spans[0].begin && segments_[first].span.end == spans[0].end) {
    change(&segments_[first]);
    return;
  }
  changed_.clear();
  size_t at = first;
  size_t next = 0;
  for (; at < segments_.size() && (next < spans.size() || segments_[at].span.begin < spans.back().end); ++at) {
    const Segment& old = segments_[at];
    int64_t from = old.span.begin;
    while (next < spans.size() && spans[next].begin < old.span.end) {
      const Span& span = spans[next];
      const int64_t begin = std::max(from, span.begin), end = std::min(old.span.end, span.end);
      Append(&changed_, old, from, begin);
      Segment segment = old;
      change(&segment);
      Append(&changed_, segment, begin, end);
      from = end;
      if (span.end > old.span.end) break;
      ++next;
    }
    Append(&changed_, old, from, old.span.end);
  }
  const size_t count = at - first;
  const size_t common = std::min(count, changed_.size());
  const auto begin = segments_.begin() + static_cast<std::ptrdiff_t>(first);
  std::copy_n(changed_.begin(), common, begin);
  if (changed_.size() > count) {
    segments_.insert(begin + static_cast<std::ptrdiff_t>(common),
                     changed_.begin() + static_cast<std::ptrdiff_t>(common), changed_.end());
  } else {
    segments_.erase(begin + static_cast<std::ptrdiff_t>(common), begin + static_cast<std::ptrdiff_t>(count));
  }
}

void Shadow::FindUndefined(const Span& span, Spans* found) const {
  for (size_t i = FirstAt(span.begin); i < segments_.size() && segments_[i].span.begin < span.end; ++i) {
    if (segments_[i].defined) continue;
    found->push_back({std::max(segments_[i].span.begin, span.begin), std::min(segments_[i].span.end, span.end)});
  }
}

void Shadow::Undefine(const Spans& spans) {
  if (!spans.empty()) Update(spans, [](Segment* s) { s->defined = false; });
}

void Shadow::ForgetTouches() {
  for (Segment& segment : segments_) segment.touched = 0;
}

void Shadow::ForgetOrder() {
  changed_.clear();
  for (Segment segment : segments_) {
    segment.write = segment.add = segment.read = {};
    Append(&changed_, segment, segment.span.begin, segment.span.end);
  }
  segments_.swap(changed_);
}

}  // namespace check
}  // namespace AscendC
