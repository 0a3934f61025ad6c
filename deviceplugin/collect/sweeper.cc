// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/collect/sweeper.h"

#include <chrono>
#include <filesystem>

#include "common/grant/leftovers.h"
#include "common/log/log.h"

namespace sluice::deviceplugin {

Sweeper::~Sweeper() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Sweeper::Run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    lock.unlock();
    const Result<size_t> swept =
        SweepLeftovers(*store_, std::filesystem::file_time_type::clock::now());
    if (!swept.ok()) {
      logging::Warn("leftovers of grants: {}", swept.status().message());
    } else if (*swept > 0) {
      logging::Info("{} leftovers of grants without a record are removed", *swept);
    }
    lock.lock();
    wake_.wait_for(lock, std::chrono::minutes(1), [this] { return stop_; });
  }
}

}  // namespace sluice::deviceplugin
