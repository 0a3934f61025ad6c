// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "noderuntime/gateway/job_view.h"

namespace sluice::gateway {

/// What one job has from another. Job 0: of pairs that the daemon does not tell apart, in sum.
struct LoanView {
  uint32_t lender = 0;
  uint32_t borrower = 0;
  Figure bytes;  // at the moment
  Figure lent_bytes;
  Figure returned_bytes;
  Figure loans;
};

/// A GPU and its daemon.
struct GpuView {
  uint32_t number = 0;
  uint64_t look_ns = 0;  // how long the daemon's answer took
  bool up = false;       // its daemon answers; else nothing below is known
  bool there = false;    // something listens in its daemon's place, whether it answers or not
  Figure answer_age_ns;  // where that is so: since its last answer (AnswerAges)
  std::string uuid;
  std::string name;
  std::string version;
  Figure started_unix_ms;
  Figure memory_bytes;
  Figure pool_bytes;
  Figure budget_bytes;
  Figure free_bytes;
  Figure reserve_bytes;
  Figure largest_free_bytes;
  Figure outside_reserve_bytes;
  Figure outside_bytes;
  Figure nvml_used_bytes;
  std::optional<int64_t> drift_bytes;
  Figure host_tier_capacity_bytes;
  Figure host_tier_used_bytes;
  std::string policy;
  uint32_t lanes = 0;
  std::string claims;
  Figure policy_switches;
  Figure decisions;
  Figure fences_pending;
  std::optional<bool> keeper;  // whether there is one; none: the daemon is not to have one
  Figure keeper_losses;
  std::optional<bool> draining;
  Figure bypassed_pods;
  Figure bypassed_others;
  ByReason sessions;  // by the protocol's version
  std::optional<metrics::Histogram> decision;
  std::optional<metrics::Histogram> service;
  std::optional<metrics::Histogram> handover;
  std::optional<metrics::Histogram> reclaim;
  std::vector<LoanView> loans;
  std::vector<JobView> jobs;
  /// Those that ended a short while ago, so that their last counts are seen. None: it does not
  /// tell.
  std::optional<std::vector<JobView>> ended;
};

/// What a daemon's status (JSON) says. What it does not say, being of another version, is nothing.
/// kUnavailable: it is no status.
Result<GpuView> ParseStatus(const std::string& json);

}  // namespace sluice::gateway
