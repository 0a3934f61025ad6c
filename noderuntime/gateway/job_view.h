// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/metrics/family.h"

namespace sluice::gateway {

/// A number that a daemon may not tell, being of another version.
using Figure = std::optional<uint64_t>;
/// How often, by the code of a reason.
using ByReason = std::optional<std::map<std::string, uint64_t>>;

/// A job as its daemon's status tells of it. Amounts in bytes.
struct JobView {
  uint32_t id = 0;
  std::string name;
  std::string phase;
  Figure request_bytes;
  Figure limit_bytes;
  Figure claim_bytes;
  Figure held_bytes;
  Figure peak_held_bytes;
  Figure live_bytes;
  Figure base_bytes;
  Figure unfenced_bytes;
  Figure spare_bytes;
  Figure outside_bytes;
  Figure away_bytes;  // in host memory
  Figure launches;
  Figure run_ahead_ns;
  Figure credit_ns;       // of its profile, as
  Figure iteration_ns;    // this one
  std::string waits_for;  // a sentence; empty: for nothing
  std::string wait_code;  // its reason, as `waits` counts it
  uint64_t waits_ms = 0;

  // Since it came:
  Figure iterations;
  Figure lent_bytes;      // at the moment, as
  Figure borrowed_bytes;  // this one
  Figure lent_total_bytes;
  Figure borrowed_total_bytes;
  Figure claim_raises;
  Figure returns;
  Figure swaps;
  ByReason waits;
  ByReason refusals;
  ByReason deviations;
  ByReason evictions;
  std::optional<metrics::Histogram> gate_wait;
  std::optional<metrics::Histogram> lease_wait;
};

/// `wait_bounds_ns`: of its histograms, which the status tells once; they come out with five of
/// them at most.
JobView ParseJob(const nlohmann::json& json, const std::vector<uint64_t>& wait_bounds_ns);

}  // namespace sluice::gateway
