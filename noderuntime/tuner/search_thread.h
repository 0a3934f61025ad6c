// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

#include "noderuntime/tuner/search.h"

namespace sluice::tuner {

/// Searches in a thread of its own, which begins with the first search and gives way to whatever
/// else wants the processor. The destructor waits for the run of the model that is under way, some
/// tens of milliseconds. Its methods are for one thread.
class SearchThread : public Searcher {
 public:
  SearchThread() = default;
  ~SearchThread() override;
  SearchThread(const SearchThread&) = delete;
  SearchThread& operator=(const SearchThread&) = delete;

  void Begin(SearchTask task) override;
  void Drop() override;
  std::optional<SearchResult> Take() override;

 private:
  void Work();

  std::mutex mutex_;
  std::condition_variable changed_;
  /// Of the latest Begin or Drop: a search of another number is stopped and forgotten.
  std::atomic<uint64_t> number_ = 0;
  std::optional<SearchTask> task_;      // not begun yet; guarded by mutex_
  std::optional<SearchResult> result_;  // of number_; guarded by mutex_
  bool ends_ = false;                   // guarded by mutex_
  std::thread thread_;
};

}  // namespace sluice::tuner
