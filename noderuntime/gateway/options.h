// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/status.h"

namespace sluice::gateway {

inline constexpr char kOff[] = "off";

struct Options {
  std::string runtime_dir;
  std::string metrics = "127.0.0.1:9452";  // address and port; off: none are served
  std::string node;                        // as metrics name this machine
  std::string admin_socket;                // empty: none
  std::string page = kOff;                 // loopback address and port of the live page; off: none
  uint32_t page_idle_exit_s = 0;           // end when there is no daemon and nobody looks; 0: never
  int ready_fd = -1;                       // gets a byte as soon as everything listens
};

/// What the command line says. Nothing: it has been answered (--help, --version,
/// --describe-metrics), and `*status` is the program's. kInvalidArgument: what is wrong, with its
/// option and what is allowed.
Result<std::optional<Options>> ReadCommandLine(int argc, const char* const* argv, int* status);

}  // namespace sluice::gateway
