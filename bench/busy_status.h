// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace sluice::bench {

inline constexpr uint32_t kBusyJobs = 64;
inline constexpr uint32_t kBusyPairs = 256;  // the most that a daemon tells of, as
inline constexpr uint32_t kBusyEnded = 64;   // this is

/// What a daemon with kBusyJobs jobs, each in everything that can be counted, and kBusyEnded that
/// ended answers to Status, with or without what happened to each lately.
nlohmann::json BusyStatus(bool events = true);

}  // namespace sluice::bench
