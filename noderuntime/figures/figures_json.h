// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "noderuntime/figures/figures.h"

namespace sluice::figures {

/// How counters are told: amounts in bytes, times since 1970 in milliseconds.
struct Scale {
  uint64_t unit_bytes = 0;
  int64_t unix_offset_ns = 0;  // to be added to times of records
  bool events = true;          // whether what happened to each job is told, too

  int64_t UnixMs(uint64_t t_ns) const {
    return (static_cast<int64_t>(t_ns) + unix_offset_ns) / 1'000'000;
  }
};

/// "figures" of a job in the daemon's status: {"iterations", "lent_bytes", ..., "events"}, of which
/// the last may be empty.
nlohmann::ordered_json ToJson(JobId id, const JobFigures& job, const scheduler::Loans& loans,
                              const Scale& scale);
/// "figures" of the node: bounds and counts of histograms, and "loans" by pair of jobs (those that
/// Loans tells apart; the rest together as 0 and 0). Each of them only grows, and no byte lent is
/// in two of them. "loans_over" is the sum of the pairs that were among them and are forgotten.
nlohmann::ordered_json ToJson(const Figures& figures, uint64_t decisions, const Scale& scale);

}  // namespace sluice::figures
