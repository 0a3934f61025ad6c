// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "noderuntime/cli/environment.h"

namespace sluice::testing {

/// System calls of one process between two lines that it writes to its standard output.
struct SyscallSpan {
  uint64_t total = 0;
  std::map<int64_t, uint64_t> by_number;
};

struct TracedRun {
  int exit_code = -1;
  std::vector<SyscallSpan> spans;  // spans[i]: after line i, up to line i + 1
};

/// Runs a program under ptrace to its end; all its threads are counted, processes that it starts
/// are not. Its output is dropped. Throws std::runtime_error when it cannot be traced.
TracedRun CountSyscalls(std::vector<std::string> argv, const cli::Environment& environment);

/// "write 3, futex 12", the commonest first, for messages.
std::string Describe(const SyscallSpan& span);

}  // namespace sluice::testing
