// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

#include "tests/support/trainer.h"

namespace sluice::testing {

/// When a job starts: once `after` has printed `losses` losses. Never by time.
struct Arrival {
  TrainerRun run;
  int after = -1;  // index of an earlier job; -1: at once
  size_t losses = 0;
};

/// Training programs on one GPU whose peaks do not fit together, and all that must hold of them.
/// Each function fails the test when it does not.
class TrainerCrowd {
 public:
  /// Runs each job alone. The pool is `pool_fraction` of the sum of their peaks, in whole handles.
  TrainerCrowd(std::vector<Arrival> jobs, double pool_fraction);

  const std::vector<TrainerResult>& solo() const { return solo_; }
  uint64_t pool() const { return pool_; }

  /// The jobs at once on a GPU without Sluice that has room for the pool and their contexts: at
  /// least one runs out of memory. A few iterations are enough for that.
  void ExpectOutOfMemoryWithoutSluice() const;

  /// Under Sluice: everybody computes what it computes alone, no kernel touches what its job does
  /// not hold, and the event log stands up to the audit. At most `iterations` of each job.
  scheduler::AuditReport Share(const std::string& policy, uint64_t iterations = ~uint64_t{0}) const;

 private:
  static void StartDue(const TestBed& bed, const std::vector<Arrival>& jobs,
                       cli::JobGroup& running);
  std::vector<Arrival> Shortened(uint64_t iterations) const;

  std::vector<Arrival> jobs_;
  std::vector<TrainerResult> solo_;
  uint64_t pool_ = 0;
};

}  // namespace sluice::testing
