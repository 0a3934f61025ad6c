// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/profile/profile.h"

namespace sluice::scheduler {

/// One whole iteration of a live job, from one trough to the next.
struct Recording {
  uint64_t live_bytes = 0;  // at its beginning
  /// kAlloc, kFree, and kLaunch of the pacing stream, in the order of the client's records.
  std::vector<Op> ops;
  uint32_t launches_beside = 0;  // on other streams: nobody measures how long they take
};

/// Keeps the latest whole iteration of a job whose profile is certain and timed. It is fed what the
/// job's profiler is fed, and that profiler says where an iteration begins. Pure; not safe from
/// several threads. Memory: two iterations of at most `most_ops` operations.
class IterationRecorder {
 public:
  static constexpr size_t kMostOps = size_t{1} << 18;

  explicit IterationRecorder(size_t most_ops = kMostOps) : most_ops_(most_ops) {}

  /// Right behind Profiler::Consume of the same operation.
  void Consume(const Op& op, const Profiler& profiler);
  /// Now and then: looks whether there is a profile to go by. `now_ns` is a clock of the caller's.
  /// `alone`: nobody else wants the GPU, so how long iterations take is the job's own affair.
  void Follow(const Profiler& profiler, uint64_t now_ns, bool alone);
  /// Records were lost: what was recorded may have holes.
  void Forget();

  /// The latest whole iteration; nullptr: there is none.
  const Recording* last() const { return last_.has_value() ? &*last_ : nullptr; }
  /// What last() goes by, with its times. Only while there is a last().
  const Profile& profile() const { return last_profile_; }
  /// How long an iteration takes from begin to begin, by the clock, the host's part included: the
  /// mean of those that began while the job was alone. 0: too few did.
  uint64_t iteration_ns() const;
  /// An iteration had more operations than are kept.
  bool too_long() const { return too_long_; }

 private:
  /// Fewer say more about how often somebody looked at the clock.
  static constexpr uint64_t kFewest = 4;

  void Cut(uint64_t live_bytes);
  void Stop();

  size_t most_ops_;
  bool following_ = false;
  uint64_t generation_ = 0;  // of the profiler's cycle
  Profile profile_;
  uint32_t to_first_ = 0;  // launches before launch 0
  bool open_ = false;      // an iteration is being recorded
  bool too_long_ = false;
  Recording current_;
  std::optional<Recording> last_;
  Profile last_profile_;

  uint64_t begun_ = 0;  // iterations
  uint64_t seen_ = 0;   // of them, when somebody looked
  uint64_t since_ = 0;  // begun_ when the clock was looked at first; 0: not yet
  uint64_t since_ns_ = 0;
  uint64_t timed_ = 0;  // iterations by the clock
  uint64_t timed_ns_ = 0;
};

}  // namespace sluice::scheduler
