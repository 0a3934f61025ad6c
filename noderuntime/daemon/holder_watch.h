// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "common/unique_fd.h"
#include "noderuntime/gpu/device.h"

namespace sluice::noded {

/// Watches a session that is over until nobody can touch its memory any more: the process has
/// ended, no forked child holds the liveness pipe, and the driver does not list the process.
/// Polled, because the last part cannot be waited for. A descriptor that was lost is no proof:
/// without the pipe nothing shows that the last forked child is gone, and the memory stays where it
/// is.
class HolderWatch {
 public:
  static constexpr uint64_t kFirstPollNs = 1'000'000;
  static constexpr uint64_t kSlowestPollNs = 20'000'000;

  HolderWatch(pid_t pid, UniqueFd pidfd, UniqueFd liveness, uint64_t now_ns);

  /// Looks if it is time to; true: the last holder is gone.
  bool Poll(gpu::Device* device, uint64_t now_ns);
  uint64_t next_poll_ns() const { return next_poll_ns_; }
  pid_t pid() const { return pid_; }
  /// False: the end of all holders cannot be known.
  bool can_tell() const { return liveness_.valid() && pid_ > 0; }
  int pidfd() const { return pidfd_.get(); }
  int liveness() const { return liveness_.get(); }

  /// Whether the process itself has ended, whoever else holds its memory.
  bool ProcessEnded();

 private:
  pid_t pid_;
  UniqueFd pidfd_;
  UniqueFd liveness_;
  bool process_gone_ = false;
  bool pipe_gone_ = false;
  uint64_t interval_ns_ = kFirstPollNs;
  uint64_t next_poll_ns_;
};

}  // namespace sluice::noded
