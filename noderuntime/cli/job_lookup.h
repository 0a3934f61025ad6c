// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"

namespace sluice::cli {

/// The number of the job that a person means: its number, its whole name, or of a container's
/// (NAMESPACE/POD/CONTAINER) the pod, where only one of its containers is there. kNotFound,
/// kInvalidArgument (several): the text lists what is there.
Result<uint32_t> FindJob(const std::string& status_json, const std::string& job);

}  // namespace sluice::cli
