// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "common/status.h"

namespace sluice::cli {

/// The daemon's status (JSON) as a table for people.
Result<std::string> RenderStatus(const std::string& json_text);

}  // namespace sluice::cli
