// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/status.h"
#include "noderuntime/cli/demo_plan.h"
#include "noderuntime/cli/doctor_command.h"
#include "noderuntime/cli/launcher.h"
#include "noderuntime/cli/look/options.h"
#include "noderuntime/cli/offline/options.h"
#include "noderuntime/cli/page_command.h"

namespace sluice::cli {

inline constexpr char kVersionText[] = "sluice 0.1.0\n";

struct StatusOptions {
  std::string runtime_dir;
  bool json = false;
};

struct PolicyOptions {
  std::string runtime_dir;
  std::string policy;
  uint32_t lanes = 0;  // 0: as many as now
};

struct BudgetOptions {
  std::string runtime_dir;
  uint64_t bytes = 0;  // 0: all of the pool
};

struct LimitOptions {
  std::string runtime_dir;
  std::string job;     // its number, its name or its pod
  uint64_t bytes = 0;  // 0: what its pod asks for
};

struct DrainOptions {
  std::string runtime_dir;
  bool on = false;
};

struct CheckLogOptions {
  std::string file;
};

struct PrintText {
  std::string text;  // --help, --version
};

using Invocation = std::variant<RunOptions, StatusOptions, PolicyOptions, BudgetOptions,
                                LimitOptions, DrainOptions, CheckLogOptions, DemoOptions,
                                DoctorOptions, PageOptions, LookOptions, OfflineOptions, PrintText>;

/// Reads the command line (without the program's own name). An error is one line that names the
/// option and what is allowed.
Result<Invocation> ParseCommandLine(const std::vector<std::string>& arguments,
                                    const Environment& environment);

}  // namespace sluice::cli
