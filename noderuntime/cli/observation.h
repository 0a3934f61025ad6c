// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"
#include "noderuntime/cli/offline/scenario.h"

namespace sluice::cli {

/// The GPU that a job was observed on.
struct ObservedGpu {
  std::string name;
  uint64_t pool_bytes = 0;
  uint64_t unit_bytes = 0;
};

/// From what `sluice status --json` says.
Result<ObservedGpu> ReadObservedGpu(const std::string& status_json);

/// Lines for a person: what an iteration of the job takes, and what two such jobs would need and
/// gain on this GPU. Simulated with policy flow, the GPU in time slices that cost what they did on
/// a GPU, from the measured times alone, the second half an iteration behind the first. `file`:
/// where the trace is, for a command to try. Equal arguments, equal text.
Result<std::string> DescribeObservation(const NamedTrace& trace, const std::string& file,
                                        const ObservedGpu& gpu);

}  // namespace sluice::cli
