// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::cli {

/// sluice top
struct TopOptions {
  std::string runtime_dir;
  bool once = false;           // print one screen and end
  uint32_t interval_ms = 500;  // between two looks
};

/// sluice explain JOB
struct ExplainOptions {
  std::string runtime_dir;
  std::string job;
  std::optional<uint32_t> gpu;  // the one, on a node with several
  bool json = false;
};

/// Memory as it moves, in a terminal, until its user ends it. With sluice-node's folder one GPU at
/// a time. Returns the program's exit code.
int RunTop(const TopOptions& options);

/// Prints why a job waits; on a node, of whichever GPU has it. Which one, if several do, must be
/// said.
int RunExplain(const ExplainOptions& options);

}  // namespace sluice::cli
