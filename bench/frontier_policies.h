// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/frontier_report.h"

namespace sluice::bench {

/// The best that was found under one policy, at each pool.
struct PolicyLine {
  std::string policy;
  double throughput[kFrontierPoolCount] = {};  // over that of taking turns
  scheduler::simulate::Setting settings[kFrontierPoolCount];
};

/// One mix in one regime: every policy under which jobs lend, by a search of its own that tries all
/// of a grid and knows nothing of what `auto` looks at first.
struct PolicyRow {
  std::string mix;
  size_t jobs = 0;
  double unlimited = 0;  // over taking turns
  std::vector<PolicyLine> lines;
  double tuned[kFrontierPoolCount] = {};  // what `auto` found, over taking turns
  size_t tried = 0;                       // settings at each pool
  std::string error;                      // not empty: nothing else counts

  /// Of all policies, taking turns included.
  double Best(size_t pool) const;
};

/// `known`: of the same mix in the same regime.
PolicyRow MeasurePolicies(const Regime& regime, const Mix& mix, const Row& known);

std::string PolicyTable(char regime, const std::vector<PolicyRow>& rows);
/// Where `auto` gets less than 0.95 of the best that was found: one line each.
std::vector<std::string> WorseThanBest(char regime, const std::vector<PolicyRow>& rows);
nlohmann::json PolicyJson(const std::vector<PolicyRow>& rows);

}  // namespace sluice::bench
