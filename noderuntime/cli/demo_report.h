// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "noderuntime/cli/demo_plan.h"
#include "noderuntime/cli/memory_chart.h"

namespace sluice::cli {

/// One job alone, without Sluice.
struct SoloResult {
  DemoJob job;
  std::vector<std::string> losses;
  uint64_t peak_bytes = 0;
  double seconds = 0;  // of the GPU's clock
};

/// All jobs together without Sluice.
struct CrowdedResult {
  bool out_of_memory = false;
  std::string job;   // the first that failed so
  std::string line;  // what it said
};

/// All jobs together under Sluice.
struct SharedResult {
  std::string policy;
  bool credit = true;
  uint32_t iterations = 0;
  std::string failure;          // empty: every job finished
  std::string loss_difference;  // empty: bit-equal to the solo runs
  double seconds = 0;
  uint64_t lent_bytes = 0;  // within iterations
  uint64_t over_budget_moments = 0;
  uint64_t over_limit_moments = 0;
  uint64_t oracle_violations = 0;
  std::vector<std::string> violations;  // of the event log, with line numbers

  double lent_bytes_per_iteration() const {
    return iterations == 0 ? 0 : static_cast<double>(lent_bytes) / iterations;
  }
};

struct DemoResult {
  DemoOptions options;
  uint64_t pool_bytes = 0;
  std::vector<SoloResult> solo;
  std::optional<CrowdedResult> crowded;  // absent on a real GPU, which is larger than the pool
  SharedResult flow;
  SharedResult temporal;
  SharedResult credit_off;
  MemoryHistory history;  // of the flow run

  uint64_t peak_sum() const;
  double solo_seconds() const;
};

/// What the demo promises and this run did not keep; one line each.
std::vector<std::string> FailedAssertions(const DemoResult& result);

/// Picture and table for a terminal.
std::string RenderReport(const DemoResult& result, bool colour);

/// The same as one JSON object.
std::string RenderJson(const DemoResult& result);

}  // namespace sluice::cli
