// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

/// 615 of "615.21.04"; 0: it is no version.
uint32_t MajorOfDriver(std::string_view version);

}  // namespace sluice
