// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/profile/iteration_recorder.h"

#include <utility>

namespace sluice::scheduler {

void IterationRecorder::Consume(const Op& op, const Profiler& profiler) {
  if (!following_) return;
  if (profiler.generation() != generation_) return Stop();
  if (op.kind == OpKind::kAlloc || op.kind == OpKind::kFree) {
    if (!open_) return;
  } else if (op.kind != OpKind::kLaunch) {
    return;
  } else if (op.stream != profile_.pacing_stream) {
    ++current_.launches_beside;
    return;
  } else {
    if (to_first_ == 0 && profile_.trough_place == TroughPlace::kBeforeFirst) {
      Cut(profiler.live_bytes());
    }
    to_first_ = (to_first_ + profile_.period - 1) % profile_.period;
  }
  if (open_ && current_.ops.size() == most_ops_) {
    open_ = false;
    too_long_ = true;
  }
  if (open_) current_.ops.push_back(op);
  if (op.kind == OpKind::kLaunch && to_first_ == 0 &&
      profile_.trough_place == TroughPlace::kAfterLast) {
    Cut(profiler.live_bytes());
  }
}

void IterationRecorder::Cut(uint64_t live_bytes) {
  ++begun_;
  if (open_) {
    last_ = std::exchange(current_, Recording());
    last_profile_ = profile_;
  }
  open_ = true;
  current_.ops.clear();
  current_.launches_beside = 0;
  current_.live_bytes = live_bytes;
}

void IterationRecorder::Follow(const Profiler& profiler, uint64_t now_ns, bool alone) {
  if (!alone) {
    since_ = 0;  // what was measured so far stands, until there is better
  } else if (begun_ != seen_) {
    if (since_ == 0) {
      since_ = begun_;
      since_ns_ = now_ns;
    }
    if (begun_ - since_ >= kFewest) {
      timed_ = begun_ - since_;
      timed_ns_ = now_ns - since_ns_;
    }
  }
  seen_ = begun_;
  if (following_ && profiler.generation() == generation_) return;
  Stop();
  if (!profiler.certain() || profiler.wants_times()) return;
  std::optional<Profile> found = profiler.Current();
  if (!found.has_value() || !found->timed) return;
  profile_ = *std::move(found);
  to_first_ = profiler.LaunchesToFirst();
  generation_ = profiler.generation();
  following_ = true;
}

uint64_t IterationRecorder::iteration_ns() const { return timed_ == 0 ? 0 : timed_ns_ / timed_; }

void IterationRecorder::Stop() {
  following_ = open_ = false;
  since_ = 0;
}

void IterationRecorder::Forget() {
  Stop();
  last_.reset();
}

}  // namespace sluice::scheduler
