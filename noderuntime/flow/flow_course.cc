// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What policies predict with: the course of each job that has a profile, as it was measured alone
// and as it goes beside the others.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "noderuntime/flow/flow.h"

namespace sluice::flow {

namespace {

constexpr uint64_t kLeastPause = 500'000;  // ns between two looks at what was put off

}  // namespace

void Flow::LearnCourse(JobId id, const Published& published) {
  const scheduler::Profile& profile = published.profile;
  const auto iteration_ns = static_cast<double>(profile.iteration_ns);
  const bool timed = profile.launch_ns.size() >= profile.period;
  std::vector<double> gate_ns;
  for (const scheduler::GatePlan& gate : published.plan.gates) {
    const uint32_t launch = std::min(gate.launch, profile.period);
    // A daemon that takes over does not know each launch; what it measures tells soon enough.
    gate_ns.push_back(
        timed ? std::accumulate(profile.launch_ns.begin(), profile.launch_ns.begin() + launch, 0.0)
              : iteration_ns * launch / std::max(profile.period, 1u));
  }
  const uint64_t base = (profile.base_bytes + options_.unit_bytes - 1) / options_.unit_bytes;
  courses_[id] = scheduler::Course(published.plan, gate_ns, iteration_ns, static_cast<Units>(base));
}

void Flow::PassGate(JobId id, uint32_t gate) {
  const auto found = courses_.find(id);
  if (found == courses_.end()) return;
  if (gate == 0) found->second.Open(static_cast<double>(now_ns_));
  found->second.Pass(gate, static_cast<double>(now_ns_));
  NoticeFences(id);
}

/// What it has given back at the gates behind it has come back: its GPU has passed them.
void Flow::NoticeFences(JobId id) {
  const auto found = courses_.find(id);
  const FlowJob* job = Find(id);
  if (found == courses_.end() || !job->releases.empty() || !job->published.has_value()) return;
  const uint32_t launch = job->published->plan.gates[found->second.passed()].launch;
  found->second.Reach(launch, static_cast<double>(now_ns_));
}

void Flow::EndCourse(JobId id) {
  const auto found = courses_.find(id);
  if (found != courses_.end()) found->second.End(static_cast<double>(now_ns_));
}

scheduler::Outlook Flow::OutlookNow() const { return {static_cast<double>(now_ns_), &courses_}; }

void Flow::RememberToAsk() {
  const double in = scheduler::AskAgainIn(ledger_, requests_, options_.policy, OutlookNow());
  // Beside a job that is late the time that is left does not shrink: no closer looks than this.
  again_at_ns_ =
      std::isfinite(in) ? now_ns_ + std::max(static_cast<uint64_t>(in), kLeastPause) + 1 : 0;
}

}  // namespace sluice::flow
