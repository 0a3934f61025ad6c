// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "noderuntime/cli/environment.h"

namespace sluice::cli {

/// How the memory allocators of frameworks are asked to behave, by environment variables alone
/// (docs/operations/frameworks.md).
enum class Frameworks {
  kAsync,       // stream-ordered allocation, which lends block by block
  kExpandable,  // PyTorch with expandable segments instead; the others as above
  kNone,        // nothing is set
};

inline constexpr const char* kFrameworksNames[] = {"async", "expandable", "none"};
std::optional<Frameworks> FrameworksNamed(std::string_view name);

/// Sets the variables; what the user has set stays as it is. One line for each variable: what was
/// set, or why not.
std::vector<std::string> SteerFrameworks(Frameworks how, Environment* environment);

}  // namespace sluice::cli
