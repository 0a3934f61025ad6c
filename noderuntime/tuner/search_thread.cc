// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/tuner/search_thread.h"

#include <sys/resource.h>
#include <unistd.h>

#include <utility>

namespace sluice::tuner {

SearchThread::~SearchThread() {
  Drop();
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void SearchThread::Begin(SearchTask task) {
  {
    const std::lock_guard lock(mutex_);
    ++number_;
    task_ = std::move(task);
    result_.reset();
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { Work(); });
  changed_.notify_one();
}

void SearchThread::Drop() {
  const std::lock_guard lock(mutex_);
  ++number_;
  task_.reset();
  result_.reset();
}

std::optional<SearchResult> SearchThread::Take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(result_, std::nullopt);
}

void SearchThread::Work() {
  // Of Linux: a thread has a priority of its own. Jobs on this node come first.
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 10);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || task_.has_value(); });
    if (ends_) return;
    const SearchTask task = *std::exchange(task_, std::nullopt);
    const uint64_t number = number_;
    lock.unlock();
    SearchResult result = RunSearch(task, [this, number] { return number_ != number; });
    lock.lock();
    if (number_ == number) result_ = std::move(result);
  }
}

}  // namespace sluice::tuner
