// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/patience.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "deviceplugin/daemon/clock.h"

namespace sluice::deviceplugin {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr std::chrono::milliseconds kAskEvery{250};
constexpr std::chrono::milliseconds kLongestPoll{60'000};

uint64_t After(std::chrono::milliseconds most) {
  return SteadyNs() + static_cast<uint64_t>(most.count()) * kNsPerMs;
}

}  // namespace

Patience::Patience(std::chrono::milliseconds most, const std::function<bool()>* stopped)
    : until_ns_(After(most)), most_(most), stopped_(stopped) {}

Patience Patience::AtMost(std::chrono::milliseconds most) const {
  Patience shorter(most, stopped_);
  return shorter.until_ns_ < until_ns_ ? shorter : *this;
}

std::chrono::milliseconds Patience::left() const {
  const uint64_t now_ns = SteadyNs();
  if (now_ns >= until_ns_) return std::chrono::milliseconds(0);
  // The last part of one counts as one.
  return std::chrono::milliseconds((until_ns_ - now_ns) / kNsPerMs + 1);
}

Status Patience::Check() const {
  if (stopped()) return Status(StatusCode::kUnavailable, "stopped");
  if (left().count() > 0) return {};
  return Status(StatusCode::kUnavailable,
                "no answer within " + std::to_string(most_.count()) + " ms");
}

Status Patience::Await(int fd, short events) const {
  while (true) {
    if (Status s = Check(); !s.ok()) return s;
    const auto most = stopped_ != nullptr ? kAskEvery : kLongestPoll;
    pollfd polled = {fd, events, 0};
    const int ready = ::poll(&polled, 1, static_cast<int>(std::min(left(), most).count()));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return Status::FromErrno(errno, "poll");
  }
}

}  // namespace sluice::deviceplugin
