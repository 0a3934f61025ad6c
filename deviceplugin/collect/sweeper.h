// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "common/grant/store.h"

namespace sluice::deviceplugin {

/// Sweeps what is left over of grants (common/grant/leftovers.h), at once and every minute, in a
/// thread of its own: whoever decides which grants are over sees only those with a record. The
/// store outlives it.
class Sweeper {
 public:
  explicit Sweeper(const GrantStore* store) : store_(store), thread_([this] { Run(); }) {}
  ~Sweeper();
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;

 private:
  void Run();

  const GrantStore* store_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace sluice::deviceplugin
