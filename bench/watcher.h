// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <string>
#include <thread>

namespace sluice::bench {

/// Asks a daemon for all that it tells, as those do who look at it: what moves (the live page, ten
/// times a second), and its whole state (Prometheus, once in many seconds). Both a hundred times a
/// second, so that a short turn is not over before somebody looked. In a thread of its own,
/// from here to the end of this object.
class Watcher {
 public:
  explicit Watcher(std::string runtime_dir);
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  ~Watcher();

  /// Both answers together. What was asked of a daemon that did not answer is not among them.
  int answers() const { return answers_; }

 private:
  void Watch();

  const std::string runtime_dir_;
  std::atomic<int> answers_ = 0;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

}  // namespace sluice::bench
