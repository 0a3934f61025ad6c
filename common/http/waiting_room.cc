// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/http/waiting_room.h"

#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace sluice::http {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::string_view kLength = "content-length:";
/// Who accepts waits while so many have not been taken in: the thread is about to.
constexpr size_t kMostEntering = 64;

/// What the header says; 0 where it says nothing or no number, more than `most` where it is large.
size_t LengthOf(std::string_view header, size_t most) {
  header.remove_prefix(kLength.size());
  size_t length = 0;
  bool begun = false;
  for (const char c : header) {
    if (c >= '0' && c <= '9') {
      begun = true;
      length = std::min(most + 1, length * 10 + static_cast<size_t>(c - '0'));
    } else if (begun || (c != ' ' && c != '\t')) {
      break;
    }
  }
  return length;
}

}  // namespace

std::optional<size_t> RequestBytes(std::string_view text, size_t most) {
  const size_t end = text.find(kHeadEnd);
  if (end == std::string_view::npos) return std::nullopt;
  const size_t head = end + kHeadEnd.size();
  size_t body = 0;
  for (size_t at = text.find("\r\n"); at < end; at = text.find("\r\n", at + 2)) {
    const std::string_view line = text.substr(at + 2, end - at - 2);
    if (line.size() < kLength.size()) continue;
    if (::strncasecmp(line.data(), kLength.data(), kLength.size()) != 0) continue;
    body = LengthOf(line, most);
    break;
  }
  if (head >= most || body > most - head) return head;
  return text.size() >= head + body ? std::optional<size_t>(head + body) : std::nullopt;
}

WaitingRoom::WaitingRoom(const Bounds& bounds, Admit admit)
    : bounds_(bounds),
      admit_(std::move(admit)),
      bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { Run(); }) {}

WaitingRoom::~WaitingRoom() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  taken_in_.notify_all();
  ::eventfd_write(bell_.get(), 1);
  thread_.join();
}

void WaitingRoom::Enter(UniqueFd connection) {
  std::unique_lock lock(mutex_);
  taken_in_.wait(lock, [this] { return over_ || entering_.size() < kMostEntering; });
  if (over_) return;
  entering_.push_back(std::move(connection));
  lock.unlock();
  ::eventfd_write(bell_.get(), 1);
}

/// False: it is over.
bool WaitingRoom::TakeIn() {
  std::vector<UniqueFd> entering;
  {
    const std::lock_guard lock(mutex_);
    if (over_) return false;
    entering.swap(entering_);
  }
  taken_in_.notify_all();
  const Clock::time_point until = Clock::now() + bounds_.request_time;
  for (UniqueFd& connection : entering) {
    Visitor visitor = {std::move(connection), {}, until};
    // Mostly all of it is there already, and the one who is served takes nobody's room.
    const Next next = Read(&visitor);
    if (next == Next::kIsAdmitted) admit_(std::move(visitor.connection), std::move(visitor.text));
    if (next != Next::kWaits) continue;
    if (visitors_.size() >= bounds_.connections) visitors_.pop_front();
    visitors_.push_back(std::move(visitor));
  }
  return true;
}

WaitingRoom::Next WaitingRoom::Read(Visitor* visitor) const {
  char buffer[4096];
  while (visitor->text.size() < bounds_.request_bytes) {
    const size_t room = std::min(sizeof buffer, bounds_.request_bytes - visitor->text.size());
    const ssize_t count = ::recv(visitor->connection.get(), buffer, room, MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return Next::kWaits;
    if (count <= 0) return Next::kIsGone;
    visitor->text.append(buffer, static_cast<size_t>(count));
    if (RequestBytes(visitor->text, bounds_.request_bytes).has_value()) return Next::kIsAdmitted;
  }
  return Next::kIsGone;  // it is too large
}

void WaitingRoom::Run() {
  std::vector<pollfd> watched;
  while (TakeIn()) {
    watched.assign(1, {bell_.get(), POLLIN, 0});
    for (const Visitor& visitor : visitors_) {
      watched.push_back({visitor.connection.get(), POLLIN, 0});
    }
    int wait_ms = -1;
    if (!visitors_.empty()) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(visitors_.front().until - Clock::now());
      wait_ms = static_cast<int>(std::max<int64_t>(left.count(), 0));
    }
    ::poll(watched.data(), watched.size(), wait_ms);
    eventfd_t rung = 0;
    ::eventfd_read(bell_.get(), &rung);
    const Clock::time_point now = Clock::now();
    std::deque<Visitor> waiting;
    for (size_t i = 0; i < visitors_.size(); ++i) {
      Visitor& visitor = visitors_[i];
      const Next next = watched[i + 1].revents != 0 ? Read(&visitor) : Next::kWaits;
      if (next == Next::kIsAdmitted) {
        admit_(std::move(visitor.connection), std::move(visitor.text));
      } else if (next == Next::kWaits && now < visitor.until) {
        waiting.push_back(std::move(visitor));
      }
    }
    visitors_.swap(waiting);
  }
}

}  // namespace sluice::http
