// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/policy/policies.h"

namespace sluice::scheduler {

/// Jobs that repeat a known curve on an idle pool: each gate is 100 ns of GPU time, and the base
/// is one unit.
struct Predicted {
  Predicted(const std::string& policy, Units pool) : ledger(pool, 1), config{.policy = policy} {
    config.budget_steps = 1;
  }

  void Add(JobId id, const std::vector<Units>& curve) {
    CyclePlan plan;
    std::vector<double> gate_ns;
    for (size_t k = 0; k < curve.size(); ++k) {
      plan.gates.push_back({static_cast<uint32_t>(k), curve[k], 1});
      plan.peak_units = std::max(plan.peak_units, curve[k]);
      gate_ns.push_back(100.0 * static_cast<double>(k));
    }
    Course course(plan, gate_ns, 100.0 * static_cast<double>(curve.size()), 1);
    course.Open(0);  // one iteration is behind it, as it was expected
    for (size_t k = 0; k < curve.size(); ++k) {
      course.Pass(k, gate_ns[k]);
      course.Reach(static_cast<uint32_t>(k), gate_ns[k]);
    }
    course.End(100.0 * static_cast<double>(curve.size()));
    courses[id] = std::move(course);
    ASSERT_TRUE(ledger.Admit(id, "j", 1, plan.peak_units).ok());
    ASSERT_TRUE(ledger.StartUnprofiled(id).ok());
    ASSERT_TRUE(ledger.Grant(id, {{id - 1, 1}}).ok());
    ASSERT_TRUE(ledger.ReachTrough(id, true).ok());
  }

  void Begin(JobId id, double now) {
    ASSERT_TRUE(ledger.OpenGate(id, {.claim = courses[id].peak()}).ok());
    courses[id].Open(now);
    courses[id].Pass(0, now);
  }

  /// With host and GPU at its gate `gate`.
  void MoveTo(JobId id, size_t gate, double now) {
    courses[id].Pass(gate, now);
    courses[id].Reach(static_cast<uint32_t>(gate), now);
  }

  const Outlook& Now() {
    outlook.courses = &courses;
    return outlook;
  }

  Asked About(JobId id, uint32_t gate = 0) {
    requests = {
        {.job = id, .kind = gate == 0 ? RequestKind::kGate0 : RequestKind::kGate, .gate = gate}};
    return {ledger, requests, requests[0], config, Now(), forecast.emplace(ledger, outlook)};
  }

  bool MayOpen(JobId id) { return FindPolicy(config.policy)->may_open(About(id)); }
  bool MayPass(JobId id, uint32_t gate) {
    return FindPolicy(config.policy)->may_pass(About(id, gate));
  }
  double OpensIn(JobId id, double now, double within = std::numeric_limits<double>::infinity()) {
    outlook.now_ns = now;
    return FindPolicy(config.policy)->opens_in(About(id), within);
  }

  Ledger ledger;
  Config config;
  std::map<JobId, Course> courses;
  Outlook outlook;
  std::optional<Forecast> forecast;
  std::vector<Request> requests;
};

}  // namespace sluice::scheduler
