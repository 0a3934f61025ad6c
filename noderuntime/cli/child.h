// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "noderuntime/cli/environment.h"

namespace sluice::cli {

struct SpawnOptions {
  std::vector<std::string> argv;  // argv[0] is a path, not looked up
  Environment environment;
  int input = -1;  // descriptors for the standard streams; -1: /dev/null
  int output = -1;
  int error = -1;
  int keep = -1;          // one more descriptor that stays open under its own number
  bool detached = false;  // own session, no parent: outlives us and is nobody's zombie
};

/// How a child ended.
struct ExitStatus {
  int code = 0;    // exit code; 128 + signal when killed
  int signal = 0;  // 0: ended by itself

  bool ok() const { return code == 0 && signal == 0; }
  /// "exit code 3", "killed by signal 9 (Killed)".
  std::string Describe() const;
};

/// A child process; killed and reaped with this object unless it ended before. It also dies when
/// this process does, so that an aborted run leaves nothing behind.
class Child {
 public:
  /// Fails when the program cannot be executed.
  static Result<Child> Spawn(const SpawnOptions& options);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child() { Destroy(); }

  pid_t pid() const { return pid_; }
  /// Readable once the child has ended.
  int pidfd() const { return pidfd_.get(); }
  void Signal(int number) const;
  /// Waits; a negative timeout waits for good. Empty: still running.
  std::optional<ExitStatus> Wait(int timeout_ms);

 private:
  Child(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  void Destroy();

  pid_t pid_ = -1;
  UniqueFd pidfd_;
  std::optional<ExitStatus> ended_;
};

/// Starts a process that is to outlive us; nothing is left to reap.
Status SpawnDetached(SpawnOptions options);

struct CommandOutput {
  ExitStatus status;
  std::string out;
  std::string err;
};

/// Runs a short program to its end and collects what it says.
Result<CommandOutput> RunCommand(SpawnOptions options);

}  // namespace sluice::cli
