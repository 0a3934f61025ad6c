// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Node groups of Waterwave (Shi et al., 4.3 and 4.4): an iteration is cut into groups that take
// (ANG) or give back (DNG) about `split` of memory; a group begins when its high water fits beside
// those of the groups that are under way, and one that takes memory rather beside one that gives it
// back. The order inside a job is its own. What the paper's Algorithm 1 schedules ahead, for two
// jobs, is decided here whenever a group ends, for any number of jobs and lanes; the next iteration
// of a short job goes on beside the groups of a long one. No barrier: fates are not tied together.
#include <algorithm>
#include <cstdint>

#include "scheduler/policy/policies.h"
#include "scheduler/policy/soft_budget.h"

namespace sluice::scheduler {

namespace {

/// The groups that are under way beside `job`.
struct Beside {
  uint64_t high_water = 0;  // and what parked jobs hold
  uint32_t taking = 0;
  bool known = true;
};

Beside Others(const Asked& asked) {
  Beside beside;
  for (const Job& job : asked.ledger.jobs()) {
    if (job.id == asked.request.job) continue;
    const Course* course = asked.outlook.Of(job.id);
    if (!job.under_way()) {
      beside.high_water += job.held();
      continue;
    }
    if (course == nullptr || !course->open()) {
      beside.known = false;
      continue;
    }
    // Its memory comes back when its GPU has passed the group.
    const GateGroup now = course->GroupOf(course->passed(), asked.config.groups_per_peak);
    beside.high_water += std::max(now.high_water, job.held());
    const bool waits =
        std::any_of(asked.requests.begin(), asked.requests.end(),
                    [&job](const Request& request) { return request.job == job.id; });
    if (now.takes && !waits) ++beside.taking;
  }
  return beside;
}

bool Fits(const Asked& asked, const GateGroup& group) {
  const Beside beside = Others(asked);
  if (!beside.known) return false;
  if (group.takes && 2 * beside.taking >= asked.config.lanes) return false;
  return beside.high_water + group.high_water <= CountedOn(asked.ledger, asked.config);
}

}  // namespace

bool NodeGroupMayOpen(const Asked& asked) {
  const uint32_t occupants = Occupants(asked.ledger, asked.request.job);
  if (occupants == 0) return true;
  const Course* mine = asked.outlook.Of(asked.request.job);
  if (mine == nullptr || occupants >= asked.config.lanes) return false;
  return Fits(asked, mine->GroupOf(0, asked.config.groups_per_peak));
}

bool NodeGroupMayPass(const Asked& asked) {
  const Course* mine = asked.outlook.Of(asked.request.job);
  if (mine == nullptr || asked.request.gate >= mine->gates()) return true;
  const GateGroup group = mine->GroupOf(asked.request.gate, asked.config.groups_per_peak);
  if (group.first != asked.request.gate) return true;  // inside the group that was let in
  return Fits(asked, group);
}

}  // namespace sluice::scheduler
