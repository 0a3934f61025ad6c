// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/daemon/holder_watch.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace sluice::noded {
namespace {

/// A descriptor that is not there says nothing.
bool Ready(const UniqueFd& fd, short events) {  // NOLINT(google-runtime-int): pollfd
  if (!fd.valid()) return false;
  pollfd watched = {fd.get(), events, 0};
  return ::poll(&watched, 1, 0) == 1 && (watched.revents & (events | POLLHUP)) != 0;
}

}  // namespace

HolderWatch::HolderWatch(pid_t pid, UniqueFd pidfd, UniqueFd liveness, uint64_t now_ns)
    : pid_(pid), pidfd_(std::move(pidfd)), liveness_(std::move(liveness)), next_poll_ns_(now_ns) {}

bool HolderWatch::ProcessEnded() {
  process_gone_ = process_gone_ || Ready(pidfd_, POLLIN);
  // Without its descriptor the number has to do. Somebody else may have it by now, and is waited
  // for then: too long, never too short.
  if (!process_gone_ && !pidfd_.valid() && pid_ > 0) {
    process_gone_ = ::kill(pid_, 0) != 0 && errno == ESRCH;
  }
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
