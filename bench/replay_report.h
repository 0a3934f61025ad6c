// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/replay_case.h"

namespace sluice::bench {

/// One pair under one policy, on both sides.
struct ReplayRow {
  std::string pair;
  std::string policy;
  scheduler::Units pool_units = 0;
  Replayed model;
  Replayed live;
  std::string error;                      // of the processes; empty: none
  std::vector<scheduler::Units> refused;  // pools in which a process ran out of memory
};

std::string ReplayHead();
std::string ReplayLines(const ReplayRow& row);

/// Over the jobs of all rows: the error of the mean iteration's time at p50 and p90, the largest
/// difference of what a job held at most. A row without figures misses the goal.
struct ReplayVerdict {
  std::string text;
  bool met = false;
};
ReplayVerdict Judge(const std::vector<ReplayRow>& rows);

nlohmann::json ReplayJson(const std::vector<ReplayRow>& rows, const ReplayMachine& machine,
                          const std::string& claims, scheduler::Placing placing);

}  // namespace sluice::bench
