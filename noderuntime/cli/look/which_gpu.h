// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/status.h"

namespace sluice::cli {

/// What one daemon of a node answered.
struct GpuStatus {
  std::string gpu;             // its number
  Result<std::string> status;  // JSON
};

/// The GPU, by its place in the list, whose job a person means; numbers of jobs are each daemon's
/// own. One that runs goes before those that ended a moment ago. kInvalidArgument: several are
/// meant; kNotFound: there is none; kUnavailable: it was not found, and not everybody answered.
Result<size_t> WhichGpu(const std::vector<GpuStatus>& gpus, const std::string& job);

}  // namespace sluice::cli
