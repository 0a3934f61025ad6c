// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <unistd.h>

#include <string>

namespace sluice {

/// What this machine calls itself; empty: it does not.
inline std::string HostName() {
  char name[257] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

}  // namespace sluice
