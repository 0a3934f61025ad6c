// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/bytes.h"
#include "common/status.h"

namespace sluice::cli {

// check-log proves safety by trying every order of the jobs, which more than six make too slow.
inline constexpr uint32_t kMinDemoJobs = 2;
inline constexpr uint32_t kMaxDemoJobs = 6;
inline constexpr uint32_t kMinDemoIterations = 10;
inline constexpr uint32_t kMaxDemoIterations = 100'000;
inline constexpr double kMinPoolFraction = 0.3;
/// Excluded: the demo's point is a pool clearly smaller than what the jobs want together.
inline constexpr double kEndPoolFraction = 0.65;

/// Small simulated jobs: a peak must be at least 64 lease units to mean anything.
inline constexpr uint64_t kDemoUnitBytes = 256 * kKiB;
inline constexpr uint64_t kDemoHandleBytes = 2 * kMiB;
inline constexpr uint64_t kMinPeakUnits = 64;

struct DemoOptions {
  uint32_t jobs = 2;
  uint32_t iterations = 200;
  /// The largest two-digit fraction below kEndPoolFraction. What can be lent is the pool less one
  /// claim and the other job's base, so each percent counts: in whole handles it is 62 % of the
  /// peaks, and at 57 % (of 0.6) two jobs of one peak each mostly take turns.
  double pool_fraction = 0.64;
  uint64_t seed = 1;
  bool json = false;
  std::string keep;         // folder for logs; empty: a temporary one that is removed
  bool real_gpu = false;    // the libcuda of this machine instead of the simulated driver
  uint64_t pool_bytes = 0;  // fixed pool, instead of a share of the measured peaks
};

/// One training program of the demo.
struct DemoJob {
  std::string label;  // "job 1"
  std::string model;  // a preset of the trainer
  uint64_t seed = 0;
};

/// Jobs that differ from each other in model or seed.
std::vector<DemoJob> PlanJobs(const DemoOptions& options);

/// The trainer's arguments for `job`, its path first.
std::vector<std::string> TrainerCommand(const std::string& trainer, const DemoJob& job,
                                        uint32_t iterations);

/// The pool, in whole handles: the given one, else the fraction of the sum of the peaks rounded
/// down. An error when the result cannot show anything (a peak that alone exceeds it, tiny peaks).
Result<uint64_t> PlanPool(const DemoOptions& options, const std::vector<uint64_t>& solo_peaks);

/// How many iterations the run without credit gets: so many that with credit much would be lent in
/// them, so that little shows something.
uint32_t CreditOffIterations(uint32_t iterations);

}  // namespace sluice::cli
