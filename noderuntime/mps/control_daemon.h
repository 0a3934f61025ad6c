// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "common/status.h"
#include "noderuntime/cli/child.h"
#include "noderuntime/mps/command.h"
#include "noderuntime/supervisor/restarts.h"

namespace sluice::mps {

/// Whether the program is there and may be run. kInvalidArgument: names --mps-control and what is
/// allowed.
Status CheckProgram(const std::string& program);

/// NVIDIA's MPS control daemon of one GPU, started again when it ends. Nothing that goes wrong here
/// is an error of the caller's: the log says it, and programs that start meanwhile run without MPS.
/// Times are a steady clock's, in nanoseconds. For one thread.
class ControlDaemon {
 public:
  explicit ControlDaemon(Control control) : control_(std::move(control)) {}

  /// Starts it if that is due. How long until it is; nothing: it runs, and SIGCHLD tells its end.
  std::optional<uint64_t> Start(uint64_t now_ns);
  /// Whether it has ended, and when it is started again.
  void Look(uint64_t now_ns);
  /// 0: it does not run.
  pid_t pid() const { return child_.has_value() ? child_->pid() : 0; }

  /// Asks it to end with its servers, as its manual has it.
  void AskToEnd();
  /// Waits that long for that; then it is told by a signal, and at last killed.
  void End(int timeout_ms);

 private:
  Status MakeFolders() const;
  Status Spawn();

  const Control control_;
  std::optional<cli::Child> child_;
  std::optional<cli::Child> quit_;
  uint64_t since_ns_ = 0;  // of its start
  uint64_t next_ns_ = 0;   // when it is to be started
  supervisor::Restarts restarts_;
};

}  // namespace sluice::mps
