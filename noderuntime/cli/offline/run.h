// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "common/status.h"
#include "noderuntime/cli/offline/options.h"

namespace sluice::cli {

/// What a command leaves: the texts for the two streams, and its exit code.
struct Output {
  int code = 0;
  std::string out;
  std::string err;
};

/// "sluice: <message>" on stderr and kExitUsage.
Output Refused(const Status& status);

/// The answer no of what simulates: why on stderr, with `json` also as the one object on stdout,
/// and 1.
Output DoNotFit(const std::string& why, bool json);

/// Runs the command that was chosen. `shipped`: the folder of the machine files that came with the
/// program.
Output RunOffline(const OfflineOptions& options, const std::string& shipped);

}  // namespace sluice::cli
