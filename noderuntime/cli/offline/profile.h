// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "noderuntime/cli/offline/profile_options.h"
#include "noderuntime/cli/offline/run.h"

namespace sluice::cli {

/// sluice profile. `shipped`: the folder of the machine files that came with the program.
Output RunProfile(const ProfileOptions& options, const std::string& shipped);

}  // namespace sluice::cli
