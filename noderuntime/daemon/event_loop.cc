// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/daemon/event_loop.h"

#include <sys/epoll.h>
#include <time.h>

#include <cerrno>
#include <utility>

namespace sluice::noded {
namespace {

constexpr int kEventsPerTurn = 64;

}  // namespace

Result<EventLoop> EventLoop::Create() {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return Status::FromErrno(errno, "epoll");
  return EventLoop(std::move(epoll));
}

Result<EventLoop::Token> EventLoop::Add(int fd, uint32_t events, Handler handler) {
  const Token token = next_token_++;
  epoll_event event = {};
  event.events = events;
  event.data.u64 = token;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return Status::FromErrno(errno, "epoll");
  }
  watches_[token] = {fd, events, std::make_shared<Handler>(std::move(handler))};
  return token;
}

void EventLoop::Modify(Token token, uint32_t events) {
  const auto found = watches_.find(token);
  if (found == watches_.end() || found->second.events == events) return;
  found->second.events = events;
  epoll_event event = {};
  event.events = events;
  event.data.u64 = token;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, found->second.fd, &event);
}

void EventLoop::Remove(Token token) {
  const auto found = watches_.find(token);
  if (found == watches_.end()) return;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.fd, nullptr);
  watches_.erase(found);
}

Result<int> EventLoop::RunOnce(int64_t timeout_ns) {
  epoll_event events[kEventsPerTurn];
  int count = -1;
  if (precise_) {
    const timespec wait = {static_cast<time_t>(timeout_ns / 1'000'000'000),
                           static_cast<long>(timeout_ns % 1'000'000'000)};  // NOLINT: timespec
    count = ::epoll_pwait2(epoll_.get(), events, kEventsPerTurn, timeout_ns < 0 ? nullptr : &wait,
                           nullptr);
    // Linux before 5.11: milliseconds have to do.
    if (count < 0 && errno == ENOSYS) precise_ = false;
  }
  if (!precise_) {
    const int64_t ms = timeout_ns < 0 ? -1 : (timeout_ns + 999'999) / 1'000'000;
    count = ::epoll_wait(epoll_.get(), events, kEventsPerTurn, static_cast<int>(ms));
  }
  if (count < 0 && errno == EINTR) return 0;
  if (count < 0) return Status::FromErrno(errno, "epoll");
  for (int i = 0; i < count; ++i) {
    // The kernel packs the structure, so its members may stand anywhere: a copy, no reference.
    const Token token = events[i].data.u64;
    const auto found = watches_.find(token);
    if (found == watches_.end()) continue;
    // Held here: a handler may remove itself.
    const std::shared_ptr<Handler> handler = found->second.handler;
    (*handler)(events[i].events);
  }
  return count;
}

}  // namespace sluice::noded
