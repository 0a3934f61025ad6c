// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <functional>
#include <vector>

#include "common/status.h"
#include "scheduler/simulate/simulate.h"

/// The search behind `auto`: which way of sharing gets most done for these jobs in this pool. It
/// runs the model, so its answer is a short list to be measured where jobs really run.
namespace sluice::scheduler::simulate {

struct TuneOptions {
  /// What the jobs are insured for (I5): claims up to this kind are tried.
  Claims claims = Claims::kCurve;
  uint32_t budgets =
      16;             // soft budgets tried between the smallest that holds the jobs and the pool
  bool soft = false;  // Config::soft_budget instead of Setting::budget
  /// Settings that are looked at more closely. Where three or more jobs share, twice as many of
  /// these and twice as many `candidates`, unless one_of_each.
  uint32_t refined = 3;
  /// The search looks at jobs with about so many kernels (Coarse), its last candidates at all.
  size_t kernels = 800;
  uint32_t iterations = 6;  // the same: at most so many are measured
  uint32_t candidates = 4;
  /// Of each policy with the same lanes and claims only the best is a candidate: who measures them
  /// has time for a few, and they are to differ.
  bool one_of_each = false;
  /// Sharing has to gain so much over `temporal` to be worth it.
  double least_gain = 0.005;
  bool drains = true;  // with and without Drain::kWhenOthersWait, or only with
  std::vector<uint32_t> groups = {8, 12, 16, 20, 24};  // Config::groups_per_peak of nodegroup
  /// Config::phase beside the 0 of the default; below what a budget brings about by itself none is
  /// of use, above it jobs hardly run beside each other.
  std::vector<double> phases = {0.3, 0.4, 0.5, 0.6, 0.7};
  std::vector<double> credits = {4, 16, 32};  // Setting::credit_parts beside the 8 of the default
  /// Asked before each run of the model: true ends the search (kUnavailable).
  std::function<bool()> stopped;
};

struct Tried {
  Setting setting;
  double throughput = 0;  // Outcome::Throughput
};

struct Tuned {
  Setting setting;
  Outcome outcome;
  double temporal = 0;       // Outcome::Throughput of taking turns in this pool
  std::vector<Tried> tried;  // best first; by the coarse look
  /// Those of the candidates that gain enough over `temporal`, best first; by the close look.
  std::vector<Tried> finalists;
};

/// The best setting for `runs` in `options.pool_units`; `options.setting` is ignored. Errors:
/// Simulate's for `temporal`, the setting that needs the least memory; kUnavailable: stopped.
Result<Tuned> Tune(const std::vector<JobRun>& runs, const Machine& machine, const Options& options,
                   const TuneOptions& tuning = {});

}  // namespace sluice::scheduler::simulate
