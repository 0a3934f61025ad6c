// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "noderuntime/cli/demo_plan.h"
#include "noderuntime/cli/layout.h"

namespace sluice::cli {

/// `sluice demo`: runs the stages, prints the results, and fails when an assertion does. Exit
/// codes: 0 all kept, 1 an assertion failed or a stage could not run, 2 bad values, 130
/// interrupted.
int RunDemo(const DemoOptions& options, const Layout& layout);

}  // namespace sluice::cli
