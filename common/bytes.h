// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/status.h"

namespace sluice {

inline constexpr uint64_t kKiB = 1024;
inline constexpr uint64_t kMiB = 1024 * kKiB;
inline constexpr uint64_t kGiB = 1024 * kMiB;

/// Reads "3GiB", "512Mi", "1.5 GiB", "1000000", "64kB" (k, M, G, T are powers of 1000, Ki, Mi, Gi,
/// Ti of 1024, as in Kubernetes quantities; a trailing B is optional). `field` names the value in
/// the error, which says what is allowed.
Result<uint64_t> ParseBytes(std::string_view text, std::string_view field);

/// "26.0 MiB": one decimal, binary units.
std::string FormatBytes(uint64_t bytes);

}  // namespace sluice
