// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/gate/credit.h"

namespace sluice {

void Credit::OnMark(uint64_t value) {
  // When the ring is full the newest entry moves on: a later position is the cautious one.
  if (count_ == kMarks) --count_;
  marks_[(first_ + count_) % kMarks] = {value, issued_ns_, issued_launches_};
  ++count_;
}

bool Credit::ShouldWait(uint64_t current_mark, uint64_t credit_ns, uint64_t* wait_for) {
  while (count_ > 0 && protocol::MarkReached(current_mark, marks_[first_].value)) {
    reached_ns_ = marks_[first_].ns;
    reached_launches_ = marks_[first_].launches;
    first_ = (first_ + 1) % kMarks;
    --count_;
  }
  if (issued_ns_ - reached_ns_ <= credit_ns) return false;
  if (issued_launches_ - reached_launches_ <= kKeepQueued) return false;
  // Waiting for a mark that leaves fewer than kKeepQueued launches behind it would starve the GPU:
  // the last mark that leaves enough is waited for at most.
  bool found = false;
  for (uint32_t i = 0; i < count_; ++i) {
    const Mark& mark = marks_[(first_ + i) % kMarks];
    if (issued_launches_ - mark.launches < kKeepQueued) break;
    *wait_for = mark.value;
    found = true;
    if (issued_ns_ - mark.ns <= credit_ns) break;
  }
  return found;
}

}  // namespace sluice
