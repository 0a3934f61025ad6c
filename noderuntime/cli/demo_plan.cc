// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/demo_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sluice::cli {

std::vector<DemoJob> PlanJobs(const DemoOptions& options) {
  std::vector<DemoJob> jobs;
  for (uint32_t i = 0; i < options.jobs; ++i) {
    jobs.push_back(
        {"job " + std::to_string(i + 1), i % 2 == 0 ? "small-a" : "small-b", options.seed + i});
  }
  return jobs;
}

std::vector<std::string> TrainerCommand(const std::string& trainer, const DemoJob& job,
                                        uint32_t iterations) {
  // Small enough for every model and seed: a loss that is not a number equals itself whatever went
  // wrong before.
  return {trainer,
          "--model",
          job.model,
          "--seed",
          std::to_string(job.seed),
          "--iterations",
          std::to_string(iterations),
          "--learning-rate",
          "0.01"};
}

Result<uint64_t> PlanPool(const DemoOptions& options, const std::vector<uint64_t>& solo_peaks) {
  const uint64_t sum = std::accumulate(solo_peaks.begin(), solo_peaks.end(), uint64_t{0});
  const uint64_t largest = *std::max_element(solo_peaks.begin(), solo_peaks.end());
  const uint64_t smallest = *std::min_element(solo_peaks.begin(), solo_peaks.end());
  if (smallest < kMinPeakUnits * kDemoUnitBytes) {
    return Status(StatusCode::kFailedPrecondition,
                  "a job's peak of " + FormatBytes(smallest) + " is less than " +
                      std::to_string(kMinPeakUnits) + " lease units of " +
                      FormatBytes(kDemoUnitBytes));
  }
  const uint64_t wanted =
      options.pool_bytes != 0
          ? options.pool_bytes
          : static_cast<uint64_t>(std::floor(static_cast<double>(sum) * options.pool_fraction));
  const uint64_t pool = wanted / kDemoHandleBytes * kDemoHandleBytes;
  if (pool < largest) {
    return Status(StatusCode::kInvalidArgument,
                  (options.pool_bytes != 0 ? "--pool" : "--pool-fraction") +
                      std::string(": a pool of ") + FormatBytes(pool) +
                      " cannot hold the largest job alone; allowed: from " + FormatBytes(largest));
  }
  if (static_cast<double>(pool) >= static_cast<double>(sum) * kEndPoolFraction) {
    return Status(StatusCode::kInvalidArgument, "--pool: " + FormatBytes(pool) +
                                                    " is not below 65 % of the sum of the peaks, " +
                                                    FormatBytes(sum));
  }
  return pool;
}

uint32_t CreditOffIterations(uint32_t iterations) { return std::min(iterations, 100u); }

}  // namespace sluice::cli
