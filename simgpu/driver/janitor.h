// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

namespace sluice::simgpu {

/// A thread of the driver's own for what must happen later: destructors of the program's objects,
/// and what has to wait until the GPU is done with it. Started when it is first needed; never ends.
class Janitor {
 public:
  /// Calls `task` soon.
  void Run(std::function<void()> task);
  /// Asks again and again until `done` says so.
  void Until(std::function<bool()> done);

 private:
  void Start();
  void Loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool started_ = false;
  std::vector<std::function<void()>> tasks_;
  std::vector<std::function<bool()>> waiting_;
};

}  // namespace sluice::simgpu
