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

/// What a daemon that is started for such a job has to be told, beyond what anybody else tells it.
std::vector<std::string> FrameworksDaemonFlags(Frameworks how);

/// One line when the daemon that runs already has a pool which this way of allocating takes nothing
/// from; "" when all is well, or when it does not say. `status_json` is what it says of itself.
std::string WhyNotLent(Frameworks how, const std::string& status_json);

}  // namespace sluice::cli
