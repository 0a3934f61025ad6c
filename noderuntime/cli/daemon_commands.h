// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "noderuntime/cli/options.h"

namespace sluice::cli {

/// "sluice: ..." on standard error; returns `code`.
int Complain(const std::string& text, int code);

/// What the command line has daemons do and say. Each prints its result and returns the program's
/// exit code. With sluice-node's folder all daemons of the node are meant, or the one that has the
/// job; one that does not answer is complained about, and the others are served all the same.
int ShowStatus(const StatusOptions& options);
int SwitchPolicy(const PolicyOptions& options);
int SwitchBudget(const BudgetOptions& options);
int SwitchLimit(const LimitOptions& options);
int SwitchDrain(const DrainOptions& options);

}  // namespace sluice::cli
