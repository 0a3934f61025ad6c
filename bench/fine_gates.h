// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>

namespace sluice::bench {

/// GateOptions::groups_per_peak of the goals: about every growth of a lease. A node has tenths of
/// the peak (docs/adr/0029).
inline constexpr uint32_t kFineGroups = 100;

}  // namespace sluice::bench
