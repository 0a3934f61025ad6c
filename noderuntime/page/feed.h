// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "noderuntime/page/history.h"
#include "noderuntime/page/source.h"

namespace sluice::page {

/// Asks one GPU's daemon on behalf of all who look at it: one question each 100 ms however many
/// they are, and none while nobody looks. For several threads.
class Feed {
 public:
  struct Pace {
    std::chrono::milliseconds poll{100};
    std::chrono::milliseconds retry{1000};  // of a daemon that does not answer
    /// Nobody looked for so long: the daemon no longer has all of what happened since.
    std::chrono::milliseconds stale{9000};
  };

  /// `source` outlives it.
  Feed(const Source* source, uint32_t gpu, Pace pace);
  /// Viewers are told to end; they must have gone before.
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  /// Somebody who looks, for as long as this lives.
  class Viewer {
   public:
    explicit Viewer(Feed* feed);
    ~Viewer();
    Viewer(const Viewer&) = delete;
    Viewer& operator=(const Viewer&) = delete;

    /// Waits for what is new. Empty: nothing within `longest`.
    std::optional<History::Message> Next(std::chrono::milliseconds longest);

   private:
    Feed* feed_;
    History::Place place_;
  };

  /// Nobody waits any longer, and nothing is asked any more.
  void Stop();
  bool stopped() const { return stopped_; }
  /// How often the daemon was asked.
  uint64_t polls() const { return polls_; }

 private:
  using Clock = std::chrono::steady_clock;

  void Run();
  /// One question; without the lock, because a daemon may take its time.
  void Ask(std::unique_lock<std::mutex>& lock);

  const Source* source_;
  const uint32_t gpu_;
  const Pace pace_;
  std::atomic<uint64_t> polls_{0};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::condition_variable changed_;  // somebody came, something is new, or it is over
  int viewers_ = 0;
  Clock::time_point asked_ = Clock::time_point::min();  // min: never
  History history_;
  std::unique_ptr<LiveConnection> connection_;  // of the thread alone
  std::thread thread_;
};

}  // namespace sluice::page
