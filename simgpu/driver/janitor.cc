// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/driver/janitor.h"

#include <chrono>
#include <thread>
#include <utility>

#include "simgpu/driver/driver.h"

namespace sluice::simgpu {

void Janitor::Start() {
  if (!std::exchange(started_, true)) std::thread([this] { Loop(); }).detach();
  changed_.notify_one();
}

void Janitor::Run(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  Start();
}

void Janitor::Until(std::function<bool()> done) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(done));
  Start();
}

void Janitor::Loop() {
  InHostFunction() = true;
  constexpr auto kAskAgain = std::chrono::milliseconds(1);
  std::unique_lock lock(mutex_);
  for (;;) {
    if (waiting_.empty()) {
      changed_.wait(lock, [this] { return !tasks_.empty() || !waiting_.empty(); });
    } else if (tasks_.empty()) {
      changed_.wait_for(lock, kAskAgain);
    }
    auto tasks = std::exchange(tasks_, {});
    auto waiting = std::exchange(waiting_, {});
    lock.unlock();
    for (const auto& task : tasks) task();
    std::erase_if(waiting, [](const auto& done) { return done(); });
    lock.lock();
    for (auto& done : waiting) waiting_.push_back(std::move(done));
  }
}

}  // namespace sluice::simgpu
