// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <unordered_set>

#include "noderuntime/flow/types.h"
#include "scheduler/profile/iteration_recorder.h"
#include "scheduler/profile/profile.h"

namespace sluice::flow {

/// Feeds a client's operation records to its profiler. The client may write anything into its page:
/// a record is copied once, then checked, and what cannot be counts as lost.
class RingReader {
 public:
  /// `tail` and `lost`: where another reader of the same ring stopped.
  explicit RingReader(const JobPages& pages, uint64_t tail = 0, uint64_t lost = 0)
      : pages_(pages), tail_(tail), lost_(lost) {}

  /// Different functions that were launched, as far as they are counted.
  static constexpr size_t kMaxFunctions = 4096;
  size_t functions() const { return functions_.size(); }

  /// Where the job is in its cycle, as far as its records were read: launches on one stream since
  /// the last gate 0 that they tell of. Never further than the job itself.
  struct Place {
    bool known = false;
    uint64_t iteration = 0;  // as the client counts
    uint64_t launches = 0;
  };
  const Place& place() const { return place_; }
  /// The stream that counts from here on: that of the cycle.
  void Follow(uint8_t stream) {
    pacing_ = stream;
    place_ = {};
  }

  /// Another record is there.
  bool more() const;

  struct Outcome {
    uint64_t records = 0;  // of any kind
    uint64_t launches = 0;
    uint64_t copies = 0;
    bool lost = false;  // records are missing or were nonsense: nothing measured so far is certain
    bool more = false;  // the bound was reached
  };
  /// At most `max` records; values above `max_bytes` are nonsense. `recorder`, if there is one, is
  /// fed the same.
  Outcome Consume(scheduler::Profiler* profiler, size_t max, uint64_t max_bytes,
                  scheduler::IterationRecorder* recorder = nullptr);

 private:
  JobPages pages_;
  uint64_t tail_;
  uint64_t lost_;
  uint8_t pacing_ = 0;
  Place place_;
  std::unordered_set<uint64_t> functions_;
};

}  // namespace sluice::flow
