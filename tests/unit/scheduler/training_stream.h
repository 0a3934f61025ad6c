// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "scheduler/profile/iteration_recorder.h"
#include "scheduler/profile/profile.h"

namespace sluice::scheduler {

/// The operations of a made-up training job: weights at the start, then iterations of a forward
/// pass that allocates a feature map per layer, a backward pass that frees them, and one update per
/// layer.
class TrainingStream {
 public:
  explicit TrainingStream(Profiler* profiler) : profiler_(profiler) {}

  void Alloc(uint64_t bytes) { Feed({OpKind::kAlloc, stream, 0, bytes}); }
  void Free(uint64_t bytes) { Feed({OpKind::kFree, stream, 0, bytes}); }
  void Launch(uint64_t function) {
    numbers_.push_back({launch_number, function});
    Feed({OpKind::kLaunch, stream, launch_number++, function});
  }
  /// Function f takes f microseconds. The GPU has not come to the last `queued` launches yet.
  void ReportTimes(size_t queued = 0) {
    while (numbers_.size() > queued) {
      const auto [number, function] = numbers_.front();
      Feed({OpKind::kLaunchTime, stream, number, function * 1000});
      numbers_.pop_front();
    }
  }
  void Begin(uint64_t weights) {
    Alloc(weights);
    for (uint64_t i = 0; i < 5; ++i) Launch(900 + i);  // fills the weights; never seen again
  }
  void Iteration(uint64_t layers, uint64_t map_bytes) {
    for (uint64_t l = 0; l < layers; ++l) {
      Alloc(map_bytes);
      Launch(100 + l);
    }
    for (uint64_t l = layers; l-- > 0;) {
      Launch(200 + l);
      Free(map_bytes);
    }
    for (uint64_t l = 0; l < layers; ++l) Launch(300);
  }

  uint8_t stream = 0;
  uint32_t launch_number = 0;
  IterationRecorder* recorder = nullptr;  // is fed the same, if there is one

 private:
  void Feed(const Op& op) {
    profiler_->Consume(op);
    if (recorder != nullptr) recorder->Consume(op, *profiler_);
  }

  Profiler* profiler_;
  std::deque<std::pair<uint32_t, uint64_t>> numbers_;
};

inline uint64_t TestFold(uint64_t hash, uint64_t function) { return hash * 31 + function; }

inline ProfilerOptions TestProfilerOptions() {
  ProfilerOptions options;
  options.hash_seed = 7;
  options.fold = &TestFold;
  options.min_covered = 32;
  return options;
}

}  // namespace sluice::scheduler
