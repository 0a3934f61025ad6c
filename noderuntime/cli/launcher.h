// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/status.h"
#include "noderuntime/cli/daemon_client.h"
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
  bool observe = false;                   // record an iteration, and say what sharing would bring
  std::string trace;                      // where to; empty: named after the program
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

/// A registered job, and what its program will see.
struct PreparedJob {
  DaemonClient client;
  Environment environment;
};

/// Finds or starts the daemon and registers the job. On failure the exit code, after one line on
/// stderr; nothing is left of the job then.
std::variant<PreparedJob, int> PrepareJob(const RunOptions& options, const Layout& layout);

/// Becomes the program, with `connection` kept open in it: the job lives as long as its processes
/// do. Returns only on failure, as RunJob.
int BecomeProgram(const RunOptions& options, const Environment& environment, UniqueFd connection);

/// Registers the job and becomes the program. Returns only on failure, with the exit code, after
/// one line on stderr.
int RunJob(const RunOptions& options, const Layout& layout);

}  // namespace sluice::cli
