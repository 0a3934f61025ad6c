// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace sluice::cli {

/// As printf, of any length.
std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// As --json prints it. A file's name need not be UTF-8: what is not is replaced.
std::string JsonText(const nlohmann::json& json);

}  // namespace sluice::cli
