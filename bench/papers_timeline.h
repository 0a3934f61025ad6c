// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

#include "bench/papers_table.h"
#include "scheduler/record/record.h"

namespace sluice::bench {

/// A part of a run's time, both ends included.
struct Window {
  double from_ns = 0;
  double to_ns = 0;
};

/// What each job holds over time, and all of them together, in GB over milliseconds from the
/// window's beginning: steps, each with both of its ends. `records`: of a whole run, the pool
/// first; `names`: of jobs 1, 2, ...; other jobs (what is beyond a budget) do not count.
std::vector<Series> HeldOverTime(const std::vector<scheduler::Record>& records,
                                 const std::vector<std::string>& names, const Window& window);

/// How long a job stands at its trough before its next iteration begins, in the mean over all that
/// begin in the window, in nanoseconds. 0: none does.
double MeanGapNs(const std::vector<scheduler::Record>& records, const Window& window);

/// How many iterations of a job begin in the window.
size_t IterationsIn(const std::vector<scheduler::Record>& records, scheduler::JobId job,
                    const Window& window);

}  // namespace sluice::bench
