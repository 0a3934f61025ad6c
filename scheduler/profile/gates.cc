// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/profile/gates.h"

#include <algorithm>

namespace sluice::scheduler {

namespace {

constexpr uint64_t kMaxCreditNs = 5'000'000;

/// What happens between two places where a gate may stand: stretch j follows the issue of j
/// launches.
struct Stretch {
  uint64_t most_live = 0;
  uint64_t largest = 0;
  uint64_t level = 0;  // live where the gate before it would stand
};

std::vector<Stretch> Stretches(const Profile& profile) {
  const uint32_t period = profile.period;
  const bool after_last = profile.trough_place == TroughPlace::kAfterLast;
  std::vector<Stretch> stretches(period);
  // From the trough to the first launch: nothing at kBeforeFirst; at kAfterLast all that follows
  // the last launch.
  stretches[0] = {profile.live_before[0], 0, profile.base_bytes};
  if (after_last) {
    stretches[0].most_live = profile.max_live[period - 1];
    stretches[0].largest = profile.largest_alloc[period - 1];
  }
  for (uint32_t j = 1; j < period; ++j) {
    stretches[j] = {profile.max_live[j - 1], profile.largest_alloc[j - 1],
                    profile.live_before[j - 1]};
  }
  if (!after_last) {  // what follows the last launch has no gate of its own
    stretches[period - 1].most_live =
        std::max(stretches[period - 1].most_live, profile.max_live[period - 1]);
    stretches[period - 1].largest =
        std::max(stretches[period - 1].largest, profile.largest_alloc[period - 1]);
  }
  return stretches;
}

uint64_t Distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

Units RoundUp(uint64_t bytes, uint64_t unit_bytes) {
  return static_cast<Units>((bytes + unit_bytes - 1) / unit_bytes);
}

}  // namespace

uint64_t CreditFor(const Profile& profile, uint32_t parts) {
  if (!profile.timed || profile.iteration_ns == 0) return kMaxCreditNs;
  return std::min(kMaxCreditNs, profile.iteration_ns / std::max(parts, 1u));
}

CyclePlan PlanGates(const Profile& profile, uint64_t unit_bytes, const GateOptions& options) {
  CyclePlan plan;
  plan.credit_ns = CreditFor(profile);
  if (profile.period == 0 || unit_bytes == 0 || options.max_gates == 0) return plan;
  const std::vector<Stretch> stretches = Stretches(profile);

  struct Group {
    uint32_t launch;
    uint64_t most_live;
    uint64_t largest;
    uint64_t level;
  };
  std::vector<Group> groups;
  // Doubled until the gates fit: it ends at the latest when one group holds the whole cycle.
  for (uint64_t size =
           std::max<uint64_t>(profile.peak_bytes / std::max(options.groups_per_peak, 1u), 1);
       ; size *= 2) {
    groups.clear();
    for (uint32_t j = 0; j < profile.period; ++j) {
      const Stretch& stretch = stretches[j];
      // A group ends when memory has grown or fallen by `size`, when it has come down from a peak
      // inside the group, and before a jump, so that nothing is asked for long before it is needed.
      const bool cut = groups.empty() || Distance(stretch.level, groups.back().level) >= size ||
                       groups.back().most_live >= stretch.most_live + size ||
                       stretch.most_live >= groups.back().most_live + size;
      if (cut) groups.push_back({j, 0, 0, stretch.level});
      groups.back().most_live = std::max(groups.back().most_live, stretch.most_live);
      groups.back().largest = std::max(groups.back().largest, stretch.largest);
    }
    if (groups.size() <= options.max_gates) break;
  }

  for (const Group& group : groups) {
    GatePlan gate;
    gate.launch = group.launch;
    gate.contiguous = RoundUp(group.largest, unit_bytes);
    gate.need_units = RoundUp(group.most_live, unit_bytes);
    if (options.margin_part > 0) {
      gate.need_units =
          RoundUp(group.most_live + group.most_live / options.margin_part, unit_bytes) + 1;
    }
    gate.need_units = std::max(gate.contiguous, gate.need_units);
    plan.peak_units = std::max(plan.peak_units, gate.need_units);
    plan.piece_units = std::max(plan.piece_units, gate.contiguous);
    plan.gates.push_back(gate);
  }
  plan.piece_units = std::max<Units>(plan.piece_units, 1);
  return plan;
}

}  // namespace sluice::scheduler
