// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

namespace sluice::scheduler {

enum class OpKind : uint8_t { kAlloc, kFree, kLaunch, kCopy, kLaunchTime, kIteration };

/// One operation of a client, as its ring reports it.
struct Op {
  OpKind kind = OpKind::kAlloc;
  uint8_t stream = 0;
  uint32_t detail = 0;  // launch number
  uint64_t value = 0;   // bytes, function id, nanoseconds or iteration, by kind
};

/// kBeforeFirst: the trough is in the hook of the cycle's first launch before it is issued;
/// kAfterLast: in that of its last launch after it was issued.
enum class TroughPlace : uint8_t { kBeforeFirst, kAfterLast };

/// What was measured of one job's iteration. Launch 0 is the first one after the trough.
struct Profile {
  uint32_t period = 0;
  uint8_t pacing_stream = 0;
  uint32_t window = 0;
  uint64_t trough_hash = 0;
  TroughPlace trough_place = TroughPlace::kBeforeFirst;
  uint64_t base_bytes = 0;            // live at the trough
  uint64_t peak_bytes = 0;            // most ever live in a repetition
  std::vector<uint64_t> live_before;  // [n]: live when launch n is issued
  std::vector<uint64_t> max_live;  // [n]: most live from the issue of launch n to that of the next
  std::vector<uint64_t> largest_alloc;  // [n]: largest block allocated in that time
  /// [n]: median of the reported times, which have 32 bits: at most 4.29 s; 0 while not timed.
  std::vector<uint32_t> launch_ns;
  uint64_t iteration_ns = 0;  // sum of the launches' times; of a simulated one also of longer ones
  uint32_t repetitions = 0;   // seen so far
  bool timed = false;         // every launch was timed at least once
};

struct ProfilerOptions {
  uint32_t max_period = 16384;
  /// A period is believed once it covers this many launches and two repetitions: a loop inside an
  /// iteration repeats too.
  uint32_t min_covered = 64;
  uint64_t hash_seed = 0;
  uint64_t (*fold)(uint64_t hash, uint64_t function_id) = nullptr;  // must be the client's
};

/// Finds a job's iteration in its operation records. Structure only: sizes may change between
/// repetitions, the profile holds their envelope. Memory is bounded by max_period. It trusts
/// nothing: any sequence of records leaves it sound, a wrong one only without a profile. That
/// training repeats itself almost exactly is Zico's observation (Lim et al., 5.2); how the cycle is
/// found: detect.h.
class Profiler {
 public:
  explicit Profiler(const ProfilerOptions& options);

  void Consume(const Op& op);
  /// Records were lost, or the client reported a mismatch: everything but the live bytes starts
  /// over.
  void Restart();

  /// A cycle is certain (its launches may not be timed yet).
  bool certain() const { return period_ != 0; }
  /// The client should report kLaunchTime.
  bool wants_times() const;
  /// nullopt: no cycle is certain, or its positions cannot be told apart by a window.
  std::optional<Profile> Current() const;
  /// How many launches of the pacing stream come before launch 0 of what Current() tells now; 0: it
  /// is the next one. A cycle has to be certain.
  uint32_t LaunchesToFirst() const;
  /// Grows whenever a cycle is found or lost; the caller publishes anew when it changes.
  uint64_t generation() const { return generation_; }
  uint64_t launches() const { return launches_; }
  uint64_t live_bytes() const { return live_; }

 private:
  struct Sample {  // one launch on the pacing stream
    uint64_t function = 0;
    uint64_t live_before = 0;
    uint64_t max_after = 0;
    uint64_t min_after = 0;
    uint64_t largest_after = 0;
    uint32_t number = 0;
  };
  struct Phase {  // one position of the cycle, from the launch at which it was found
    uint64_t function = 0;
    uint64_t live_before = 0;
    uint64_t max_after = 0;
    uint64_t min_after = 0;
    uint64_t largest_after = 0;
    std::vector<uint32_t> times;  // the latest few
  };

  /// Where the cycle is cut.
  struct Cut {
    uint32_t trough = 0;  // phase of the launch at which the least is live
    uint32_t first = 0;   // phase of launch 0
    TroughPlace place = TroughPlace::kBeforeFirst;
  };

  void Launch(const Op& op);
  void LaunchTime(const Op& op);
  void Detect();
  void Adopt(uint32_t period, uint32_t covered);
  void Lose();
  void Distrust();
  bool MovesMostMemory() const;
  uint32_t RequiredAtFirst(uint32_t period) const;
  uint32_t Required(uint32_t period) const;
  bool TroughRepeats(uint32_t period, uint32_t covered) const;
  uint32_t TroughLaunch() const;
  Cut FindCut() const;
  static void Absorb(const Sample& sample, Phase* phase);

  ProfilerOptions options_;
  uint64_t live_ = 0;
  uint64_t launches_ = 0;
  uint64_t generation_ = 0;
  uint8_t pacing_ = 0;
  std::map<uint8_t, uint64_t> stream_launches_;
  std::deque<Sample> history_;  // of the pacing stream
  uint64_t next_detect_ = 0;
  uint64_t lost_at_ = 0;  // launches when the last cycle was lost
  std::map<uint32_t, uint32_t>
      required_;  // period that turned out wrong -> launches until it is believed again
  std::map<uint32_t, uint32_t> forgiven_;  // period -> times that it was believed anew at once

  uint32_t period_ = 0;
  uint32_t position_ = 0;  // phase of the next launch
  uint32_t covered_ = 0;   // launches in a row that follow the cycle
  std::vector<Phase> cycle_;
  std::deque<std::pair<uint32_t, uint32_t>>
      numbers_;  // launch number -> phase, of the latest launches
};

}  // namespace sluice::scheduler
