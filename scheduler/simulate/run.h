// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/simulate/workload.h"

namespace sluice::scheduler::simulate {

/// In one iteration a job needs more at a gate than its profile says.
struct Deviation {
  uint64_t iteration = 0;  // 1: its first
  size_t gate = 0;
  Units units = 0;  // more than planned
};

/// In one iteration its host computes something else before a launch.
struct Stall {
  uint64_t iteration = 0;  // 1: its first
  uint32_t launch = 0;
  double ns = 0;
};

/// One job of a run of the model.
struct JobRun {
  const Workload* workload = nullptr;  // outlives the call
  double start_ns = 0;                 // when its first iteration begins
  int32_t priority = 0;                // Request::priority
  /// Nobody knows it at first: it asks to begin at start_ns and computes alone past their gates
  /// until it is known (I7). False: it is known, and has been at its trough from the beginning.
  bool newcomer = false;
  uint64_t leaves_after = 0;  // iterations; 0: it stays
  std::vector<Deviation> deviations = {};
  std::vector<Stall> stalls = {};

  /// A newcomer's iterations until its profile is known.
  static constexpr uint64_t kMeasured = 2;
};

}  // namespace sluice::scheduler::simulate
