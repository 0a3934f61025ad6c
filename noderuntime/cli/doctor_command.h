// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "noderuntime/cli/environment.h"
#include "noderuntime/cli/layout.h"

namespace sluice::cli {

struct DoctorOptions {
  std::string runtime_dir;
  bool json = false;
};

/// `sluice doctor`: looks at this machine and says, line by line, what is fine and what to do about
/// the rest. 0: jobs can run here; 1: not.
int RunDoctor(const DoctorOptions& options, const Layout& layout, const Environment& environment);

}  // namespace sluice::cli
