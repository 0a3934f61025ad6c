// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"

namespace sluice {

/// GPUs of a node by the numbers that the driver gives them, in order and each once; none: all that
/// there are.
using GpuNumbers = std::optional<std::vector<uint32_t>>;

/// "all", or numbers with commas between. kInvalidArgument: anything else; the text begins with
/// `field`.
Result<GpuNumbers> ParseGpuNumbers(const std::string& text, const std::string& field);

}  // namespace sluice
