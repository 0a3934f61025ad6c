// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace sluice::testing {

/// kB of a process, by the kernel's count: what is resident, or another line of its status, such as
/// VmHWM for the most that ever was. 0: there is no such process, or line.
inline uint64_t ResidentKb(pid_t pid, const std::string& what = "VmRSS") {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(what + ":")) return std::stoull(line.substr(what.size() + 1));
  }
  return 0;
}

}  // namespace sluice::testing
