// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"

namespace sluice::testing {

/// What the program `workload` does; every field has a flag of the same name.
struct WorkloadOptions {
  uint64_t iterations = 10;
  uint64_t blocks = 16;
  uint64_t block_bytes = 256 * 1024;
  uint64_t base_bytes = 256 * 1024;
  uint64_t launches_per_block = 1;  // on the way up
  uint64_t launches_down = 0;       // on the way down; 0: as many
  uint64_t stream_count = 1;
  uint64_t seed = 1;
  uint64_t rounds = 0;  // extra work per word, for a real GPU
  bool sync_iteration = false;
  bool sync_alloc = false;  // cuMemAlloc and cuMemFree instead of the stream-ordered calls
  uint64_t grow_iteration = 0;
  uint64_t grow_bytes = 0;  // 0: no deviation
  uint64_t grow_every = 0;  // the same block again, so many to twice as many iterations after that
  uint64_t grow_when_told_bytes = 0;  // 0: never
  uint64_t over_limit_bytes = 0;
  uint64_t fork_at_launch = 0;
  uint64_t use_in_child = 0;
  uint64_t kill_self_at_op = 0;
  uint64_t lives = 1;  // contexts, one after the other
  bool one_shot = false;
  bool hold = false;
  bool compile = false;
  bool capture = false;
  bool until_eof = false;
  bool progress = false;
  bool use_after_free = false;
  bool read_beside = false;
  bool no_memory = false;
  bool exec_holding = false;  // one_shot only
  // Named pipes of two ranks, each called by its own and calling by the other's; empty: one rank.
  std::string called_by;
  std::string calls;
};

/// An error is one line that names the flag and what is allowed.
Result<WorkloadOptions> ParseWorkloadOptions(const std::vector<std::string>& arguments);

/// What --help prints.
std::string WorkloadUsage();

}  // namespace sluice::testing
