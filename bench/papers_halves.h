// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/profile/profile.h"

namespace sluice::bench {

/// Memory of two equal jobs under Waterwave-s (Shi et al., 5.1.3), a baseline of theirs: an
/// iteration has two groups, cut before launch `cut`; while one job runs its first group the other
/// runs its second, and both wait for each other in between. Nothing orders their calls within a
/// pair of groups; taken is that both advance in proportion and end together, which a real run
/// does at best (the paper counts a batch if one of six runs succeeds).
uint64_t HalvesNeed(const scheduler::Profile& profile, size_t cut);

/// The same at the better of the paper's two cuts: at the peak, or where the backward pass begins
/// (`backward`: its first launch).
uint64_t HalvesNeedAtBest(const scheduler::Profile& profile, size_t backward);

}  // namespace sluice::bench
