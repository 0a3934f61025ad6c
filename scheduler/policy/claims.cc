// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/policy/claims.h"

#include <algorithm>
#include <array>

namespace sluice::scheduler {

namespace {

constexpr std::array<std::string_view, 3> kNames = {"contract", "steps", "curve"};

}  // namespace

std::string_view ClaimsName(Claims claims) { return kNames[static_cast<size_t>(claims)]; }

std::optional<Claims> FindClaims(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Claims>(found - kNames.begin());
}

std::vector<std::string> ClaimsNames() { return {kNames.begin(), kNames.end()}; }

std::vector<Units> AheadOf(const CyclePlan& plan, Units base_units, Claims claims, uint32_t steps) {
  const Units peak = plan.peak_units;
  std::vector<Units> ahead(plan.gates.size(), peak);
  if (claims == Claims::kContract) return ahead;
  Units most = std::min(base_units, peak);
  const Units step = std::max<Units>(1, (peak - most) / std::max(steps, 1u));
  for (size_t k = plan.gates.size(); k-- > 0;) {
    most = std::max(most, plan.gates[k].need_units);
    ahead[k] = most;
    // Up to the next step below the peak.
    if (claims == Claims::kSteps) ahead[k] = peak - (peak - most) / step * step;
  }
  return ahead;
}

}  // namespace sluice::scheduler
