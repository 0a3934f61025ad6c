// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "scheduler/ledger/types.h"

namespace sluice::figures {

/// What a job held.
struct Holding {
  scheduler::JobId job = scheduler::kNoJob;
  scheduler::Units units = 0;
  friend bool operator==(const Holding&, const Holding&) = default;
};

/// How much each job held in the last seconds, by steps: within a step the most of it, so that a
/// peak shorter than a step is seen. Iterations take milliseconds, whoever looks at them does so
/// ten times a second. A value without a clock.
class HeldHistory {
 public:
  static constexpr uint64_t kStepNs = 20'000'000;
  static constexpr uint64_t kSteps = 500;  // 10 s

  struct Step {
    uint64_t number = 0;        // its time divided by kStepNs
    std::vector<Holding> most;  // by job; who held nothing is not there
  };

  /// All that hold something at this moment, by job. Times never run back.
  void Note(uint64_t now_ns, const std::vector<Holding>& holdings);
  /// Steps from `number` on, oldest first. Between two of them everybody held what the first one
  /// says. The last one may not be over.
  std::vector<const Step*> Since(uint64_t number, uint64_t now_ns);

 private:
  void GoTo(uint64_t number);

  std::vector<Holding> now_;
  std::deque<Step> steps_;
};

}  // namespace sluice::figures
