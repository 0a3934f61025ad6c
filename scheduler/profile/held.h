// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/profile/profile.h"

namespace sluice::scheduler {

/// [n]: bytes that a job holds while its GPU executes launch n of the cycle and its host runs ahead
/// by up to `credit_ns` of GPU time (CreditFor): the most that is live from the issue of launch n
/// to that of the last one it may have issued. What it frees meanwhile its stream uses again at
/// once, and gives back when the GPU has passed it. Nothing beyond the trough, where a host whom
/// others wait for drains. With a credit of 0 it is max_live; a larger one lends less, later. Empty
/// where the profile is not timed. Linear in the launches.
std::vector<uint64_t> HeldUnderCredit(const Profile& profile, uint64_t credit_ns);

/// The mean of such a curve over the iteration's GPU time; 0 of an empty one.
double MeanHeld(const Profile& profile, const std::vector<uint64_t>& held);

}  // namespace sluice::scheduler
