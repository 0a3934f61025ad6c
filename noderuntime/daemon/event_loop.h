// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "common/status.h"
#include "common/unique_fd.h"

namespace sluice::noded {

/// One epoll set and the handlers of its descriptors, for one thread. A handler may remove any
/// other and itself; what was removed is not called again, even if it was ready in the same turn.
class EventLoop {
 public:
  using Handler = std::function<void(uint32_t events)>;
  using Token = uint64_t;  // never reused, unlike descriptors; 0: none

  static Result<EventLoop> Create();

  /// The descriptor stays the caller's; remove it before it is closed.
  Result<Token> Add(int fd, uint32_t events, Handler handler);
  void Modify(Token token, uint32_t events);
  void Remove(Token token);

  /// Waits at most `timeout_ns` (negative: for good), calls what is ready and returns how many
  /// descriptors that were.
  Result<int> RunOnce(int64_t timeout_ns);

 private:
  struct Watch {
    int fd;
    uint32_t events;
    std::shared_ptr<Handler> handler;
  };
  explicit EventLoop(UniqueFd epoll) : epoll_(std::move(epoll)) {}

  UniqueFd epoll_;
  Token next_token_ = 1;
  bool precise_ = true;  // the kernel has epoll_pwait2
  std::unordered_map<Token, Watch> watches_;
};

/// The other end sends nothing more. EPOLLRDHUP has to be asked for.
inline constexpr uint32_t kHangUp = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

/// Monotonic nanoseconds: the clock of everything in the daemon.
uint64_t NowNs();
/// What the calling thread has computed, in nanoseconds: what its work costs, however busy the
/// machine is.
uint64_t ThreadCpuNs();

}  // namespace sluice::noded
