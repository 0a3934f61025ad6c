// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "common/status.h"
#include "deviceplugin/metrics/figures.h"

namespace sluice::deviceplugin {

/// Events on their way to the API server, in a thread of its own: whoever has one to tell waits for
/// nobody. One that the server does not take now (kUnavailable) is tried again, ever more seldom,
/// and those behind it wait; one that it has already (kFailedPrecondition) is written; any other is
/// given up. Of more than `kMost` the oldest are. For several threads; the figures outlive it.
class EventQueue {
 public:
  static constexpr size_t kMost = 256;

  struct Event {
    std::string space;  // namespace it belongs to
    std::string json;
    std::string whom;  // it is on, for the log
  };
  /// `stopped`: true when it is to end early; whatever it returns then counts for nothing.
  using Post = std::function<Status(const Event& event, const std::function<bool()>& stopped)>;

  EventQueue(Post post, Figures* figures,
             std::chrono::milliseconds first_pause = std::chrono::milliseconds(500));
  /// What is left is given up.
  ~EventQueue();

  void Add(Event event);

 private:
  void Run();
  bool Send(const Event& event);
  void GiveUp(const Event& event, const std::string& why);

  const Post post_;
  Figures* const figures_;
  const std::chrono::milliseconds first_pause_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Event> waiting_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace sluice::deviceplugin
