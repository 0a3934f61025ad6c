// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"
#include "noderuntime/cli/environment.h"
#include "noderuntime/cli/frameworks.h"
#include "noderuntime/cli/layout.h"

namespace sluice::cli {

struct RunOptions {
  uint64_t limit_bytes = 0;  // 0: not given
  uint64_t request_bytes = 0;
  uint32_t gpu = 0;
  std::string runtime_dir;
  Frameworks frameworks = Frameworks::kAsync;
  bool verbose = false;                   // say what is set, and let the library say more
  std::vector<std::string> daemon_flags;  // for an embedded daemon
  std::vector<std::string> command;       // program and arguments
};

/// Exit codes of `sluice run` itself; a program that runs ends with its own.
inline constexpr int kExitUsage = 2;
inline constexpr int kExitRefused = 3;
inline constexpr int kExitCannotExecute = 126;  // as shells do
inline constexpr int kExitNotFound = 127;

/// What the program will see: the job's socket and the library in front of others that are
/// preloaded, and SLUICE_VERBOSE when the library shall say more. An error when the library's path
/// cannot stand in LD_PRELOAD.
Result<Environment> JobEnvironment(Environment environment, const Layout& layout,
                                   const std::string& socket, bool verbose = false);

/// 0, or the exit code that a shell would give for `program`, looked up along `path`.
int CheckProgram(const std::string& program, const std::string& path);

/// Registers the job and becomes the program. Returns only on failure, with the exit code, after
/// one line on stderr.
int RunJob(const RunOptions& options, const Layout& layout);

}  // namespace sluice::cli
