// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "common/status.h"
#include "common/unique_fd.h"
#include "noderuntime/cli/child.h"
#include "noderuntime/mps/command.h"

namespace sluice::mps {

/// One command to a control daemon, by NVIDIA's program, that nobody waits for: a daemon that hangs
/// must not hang who asks it. What it writes goes to memory and so never blocks it. Killed when it
/// takes longer than kLongestNs. For one thread.
class CommandRun {
 public:
  static constexpr uint64_t kLongestNs = 10'000'000'000;

  /// Errors are the system's.
  static Result<CommandRun> Start(const Command& command, uint64_t now_ns);

  struct Outcome {
    bool ok = false;
    std::string text;  // what it printed; of a failure, how it ended and what it said of it
  };
  /// Nothing: it runs.
  std::optional<Outcome> Look(uint64_t now_ns);
  /// Until it is killed.
  uint64_t LeftNs(uint64_t now_ns) const;
  pid_t pid() const { return child_.pid(); }

 private:
  CommandRun(cli::Child child, UniqueFd out, UniqueFd err, uint64_t until_ns)
      : child_(std::move(child)), out_(std::move(out)), err_(std::move(err)), until_ns_(until_ns) {}

  cli::Child child_;
  UniqueFd out_;
  UniqueFd err_;
  uint64_t until_ns_;
};

}  // namespace sluice::mps
