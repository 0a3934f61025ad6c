// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/ledger/types.h"
#include "scheduler/profile/gates.h"

namespace sluice::scheduler {

/// What others may count on in I3 while a job is in its iteration. All but the contract need the
/// insurance of I5: who left its curve may find that nobody can go on.
enum class Claims : uint8_t {
  kContract,  // the peak, to the trough
  kSteps,     // falls along the demand curve in equal parts of the peak
  kCurve,     // falls at every gate
};

std::string_view ClaimsName(Claims claims);
std::optional<Claims> FindClaims(std::string_view name);
std::vector<std::string> ClaimsNames();

/// [gate]: most units that the job holds from that gate to its trough, as far as its claims tell;
/// never rises, and its first is the plan's peak. `base_units`: what it keeps at its trough.
/// `steps`: kSteps, in how many parts; 0 is as 1.
std::vector<Units> AheadOf(const CyclePlan& plan, Units base_units, Claims claims, uint32_t steps);

}  // namespace sluice::scheduler
