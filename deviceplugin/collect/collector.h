// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/grant/store.h"
#include "common/status.h"
#include "deviceplugin/collect/stale.h"
#include "deviceplugin/pods/owned.h"

namespace sluice::deviceplugin {

/// Removes grants that are over, every so often, in a thread of its own because it waits for
/// kubelet: without the API server, which else says so. The store outlives it.
class Collector {
 public:
  /// Who has which id; may fail, and then only what shows without it counts.
  using Owners = std::function<Result<std::vector<pods::Owned>>()>;

  Collector(const GrantStore* store, Owners owners, int every_s);
  ~Collector();

  /// One round, for tests and for the thread. Returns how many it removed.
  static size_t Collect(const GrantStore& store, const Owners& owners, StaleBook* book);

 private:
  void Run(int every_s);

  const GrantStore* store_;
  const Owners owners_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace sluice::deviceplugin
