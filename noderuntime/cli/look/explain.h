// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "common/status.h"

namespace sluice::cli {

/// Why a job waits, what it was refused, and who holds what meanwhile, from the daemon's status
/// (JSON), for a person. `job`: its number, name or pod; also of one that ended a moment ago. Times
/// of day are the machine's. kNotFound, kInvalidArgument: as FindJob.
Result<std::string> Explain(const std::string& status_json, const std::string& job);

/// The same for programs: the job's entry of the status, that of the GPU, and "help".
Result<std::string> ExplainJson(const std::string& status_json, const std::string& job);

/// What whoever waits for this reason, or was refused for it, can do: one sentence. Empty: nothing
/// is known of the reason.
std::string WhatHelps(const std::string& reason);

}  // namespace sluice::cli
