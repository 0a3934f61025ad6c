// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/daemon/holder_watch.h"

#include <poll.h>

#include <algorithm>
#include <utility>

namespace sluice::noded {
namespace {

bool Ready(const UniqueFd& fd, short events) {  // NOLINT(google-runtime-int): pollfd
  if (!fd.valid()) return true;
  pollfd watched = {fd.get(), events, 0};
  return ::poll(&watched, 1, 0) == 1 && (watched.revents & (events | POLLHUP)) != 0;
}

}  // namespace

HolderWatch::HolderWatch(pid_t pid, UniqueFd pidfd, UniqueFd liveness, uint64_t now_ns)
    : pid_(pid), pidfd_(std::move(pidfd)), liveness_(std::move(liveness)), next_poll_ns_(now_ns) {}

bool HolderWatch::ProcessEnded() {
  process_gone_ = process_gone_ || Ready(pidfd_, POLLIN);
  return process_gone_;
}

bool HolderWatch::Poll(gpu::Device* device, uint64_t now_ns) {
  if (now_ns < next_poll_ns_) return false;
  // Nobody writes to the pipe, so anything but a hang-up is a client's mischief and means nothing.
  pipe_gone_ = pipe_gone_ || Ready(liveness_, 0);
  if (ProcessEnded() && pipe_gone_ && !device->IsUsedBy(pid_)) return true;
  next_poll_ns_ = now_ns + interval_ns_;
  interval_ns_ = std::min(interval_ns_ * 2, kSlowestPollNs);
  return false;
}

}  // namespace sluice::noded
