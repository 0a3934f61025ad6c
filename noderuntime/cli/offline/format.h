// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

namespace sluice::cli {

/// As printf, of any length.
std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace sluice::cli
