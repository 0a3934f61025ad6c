// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <optional>
#include <string>

#include "common/status.h"

namespace sluice::gateway {

inline constexpr char kOff[] = "off";

struct Options {
  std::string runtime_dir;
  std::string metrics = "0.0.0.0:9452";  // address and port; off: none are served
  std::string admin_socket;              // empty: none
};

/// What the command line says. Nothing: it has been answered (--help, --version), and `*status` is
/// the program's. kInvalidArgument: what is wrong, with its option and what is allowed.
Result<std::optional<Options>> ReadCommandLine(int argc, const char* const* argv, int* status);

}  // namespace sluice::gateway
