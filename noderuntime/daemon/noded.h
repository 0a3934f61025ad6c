// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "common/status.h"
#include "noderuntime/config/options.h"
#include "noderuntime/flow/types.h"

namespace sluice::noded {

/// Text for --help and --version.
struct PrintText {
  std::string text;
};

/// Reads the command line (without the program's name). The error is one line that names the
/// option, its value and what is allowed. `environment_oracle` is what SLUICE_ORACLE says: --oracle
/// without a value.
Result<std::variant<config::Options, PrintText>> ParseCommandLine(
    const std::vector<std::string>& arguments, const std::string& environment_oracle);

/// The whole program: parse, wire, run. Returns the exit code. `faults` is for tests; the program
/// that users run passes none.
int RunNoded(const std::vector<std::string>& arguments, const flow::FaultPlan& faults);

}  // namespace sluice::noded
