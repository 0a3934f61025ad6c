// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "noderuntime/cli/offline/run.h"
#include "noderuntime/cli/offline/scenario.h"
#include "noderuntime/cli/offline/simulate_options.h"

namespace sluice::cli {

/// sluice simulate. Exit code 1: the jobs do not fit. `shipped`: the folder of the machine files
/// that came with the program.
Output RunSimulate(const SimulateOptions& options, const std::string& shipped);

/// "flow, 2 lanes, curve claims, ...": for people.
std::string Describe(const scheduler::simulate::Setting& setting, uint64_t unit_bytes);

/// That and the flags that ask for it (FlagsOf), a line each.
std::string SharedBy(const scheduler::simulate::Setting& setting, const ScenarioOptions& asked);

/// A line where jobs ask for more than lives; else nothing.
std::string Placed(const ScenarioOptions& asked, const Scenario::Answer& answer);

}  // namespace sluice::cli
