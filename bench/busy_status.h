// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>

namespace sluice::bench {

inline constexpr uint32_t kBusyJobs = 64;
inline constexpr uint32_t kBusyPairs = 256;  // the most that a daemon tells of

/// What a daemon with kBusyJobs jobs, each in everything that can be counted, answers to Status.
std::string BusyStatus();

}  // namespace sluice::bench
