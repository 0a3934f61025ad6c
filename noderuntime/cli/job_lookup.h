// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"

namespace sluice::cli {

/// Whether a person who says `job` may mean this one: by its number, its whole name, or of a
/// container's (NAMESPACE/POD/CONTAINER) the pod.
bool MayMean(const std::string& job, uint32_t id, const std::string& name);

/// The number of the job that a person means; a number goes before a name. kNotFound,
/// kInvalidArgument (several): the text lists what is there.
Result<uint32_t> FindJob(const std::string& status_json, const std::string& job);

}  // namespace sluice::cli
