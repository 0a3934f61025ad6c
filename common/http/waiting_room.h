// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <poll.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/unique_fd.h"

namespace sluice::http {

/// How many bytes the request at the beginning of `text` has, head and body; nullopt: it is not
/// whole yet. One whose body would not fit in `most` bytes, and one whose body says no length, is
/// whole with its head: what is missing is refused by whoever serves it.
std::optional<size_t> RequestBytes(std::string_view text, size_t most);

/// Connections whose request has not arrived whole, in one thread that waits for none of them. So
/// nobody who sends half a request keeps a thread from the others, and when there is no room left
/// the oldest of them gives way. Thread-safe.
class WaitingRoom {
 public:
  using Clock = std::chrono::steady_clock;
  struct Bounds {
    size_t connections = 128;
    size_t request_bytes = 16u << 10;
    std::chrono::milliseconds request_time{5000};  // from the connection to the request's last byte
  };
  /// Takes a connection and its whole request, in the room's thread: must not wait.
  using Admit = std::function<void(UniqueFd connection, std::string request)>;

  WaitingRoom(const Bounds& bounds, Admit admit);
  /// Hangs up on those who wait.
  ~WaitingRoom();
  WaitingRoom(const WaitingRoom&) = delete;
  WaitingRoom& operator=(const WaitingRoom&) = delete;

  /// A connection that was accepted. Waits no longer than the room's thread takes to take it in.
  void Enter(UniqueFd connection);

 private:
  struct Visitor {
    UniqueFd connection;
    std::string text;
    Clock::time_point until;
  };
  enum class Next : uint8_t { kWaits, kIsAdmitted, kIsGone };

  void Run();
  bool TakeIn();
  Next Read(Visitor* visitor) const;

  const Bounds bounds_;
  const Admit admit_;
  UniqueFd bell_;                 // rings when somebody enters, and at the end
  std::deque<Visitor> visitors_;  // the oldest first; the thread's own
  std::mutex mutex_;
  std::condition_variable taken_in_;
  std::vector<UniqueFd> entering_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace sluice::http
