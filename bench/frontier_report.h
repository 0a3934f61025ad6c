// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/frontier_regimes.h"
#include "scheduler/simulate/tune.h"

namespace sluice::bench {

/// Pools over the bases of all jobs and the largest peak.
inline constexpr double kFrontierPools[] = {1.0, 1.1, 1.25, 1.5};
inline constexpr size_t kFrontierPoolCount = std::size(kFrontierPools);

/// The best setting of one search at each pool.
struct Line {
  double throughput[kFrontierPoolCount] = {};  // over that of taking turns
  double retained[kFrontierPoolCount] = {};    // of what unlimited memory would gain over turns
  scheduler::simulate::Setting settings[kFrontierPoolCount];
};

/// One mix in one regime. Lines by what the jobs are insured for: contract, steps, curve (`auto`).
struct Row {
  std::string mix;
  size_t jobs = 0;
  double temporal = 0;   // throughput of taking turns
  double unlimited = 0;  // over that; the best of three start offsets
  Line lines[3];
  std::string error;  // not empty: nothing else counts
};

Row MeasureFrontier(const Regime& regime, const Mix& mix);

struct RegimeRows {
  char regime = 'A';
  std::vector<Row> rows;
};

/// Means are over mixes where unlimited memory gains so much over taking turns.
inline constexpr double kWorthCounting = 1.03;

/// What was missed of the goals, one line each.
std::vector<std::string> Missed(const RegimeRows& measured);

std::string FrontierTable(const RegimeRows& measured);
nlohmann::json FrontierJson(const std::vector<RegimeRows>& measured);

}  // namespace sluice::bench
