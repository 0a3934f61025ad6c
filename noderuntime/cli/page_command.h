// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "common/status.h"
#include "noderuntime/cli/environment.h"
#include "noderuntime/cli/layout.h"

namespace sluice::cli {

struct PageOptions {
  std::string runtime_dir;
  int gpu = -1;  // which one the page shows first; -1: the first there is
};

/// Where the live page of a runtime folder is. On a workstation, starts a sluice-gateway that
/// serves it when none does; it outlives this process, and ends when there has been no daemon and
/// no viewer for some minutes. kNotFound: the folder is a node's, whose gateway serves no page.
Result<std::string> PageUrlOf(const PageOptions& options, const Layout& layout,
                              const Environment& environment);

/// Prints it; returns the program's exit code.
int ShowPage(const PageOptions& options, const Layout& layout);

}  // namespace sluice::cli
