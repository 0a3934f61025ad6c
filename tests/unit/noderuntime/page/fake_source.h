// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "noderuntime/page/source.h"

namespace sluice::page {

/// A daemon made of answers that the test sets. For several threads.
class FakeSource final : public Source {
 public:
  std::vector<uint32_t> Gpus() const override { return gpus; }

  Result<std::unique_ptr<LiveConnection>> Connect(uint32_t) const override {
    std::unique_lock lock(mutex_);
    ++connects_;
    changed_.notify_all();
    if (down_) return sluice::Status(StatusCode::kUnavailable, "no daemon runs");
    lock.unlock();
    return std::unique_ptr<LiveConnection>(new Connection(this));
  }

  Result<std::string> Status(uint32_t) const override {
    std::unique_lock lock(mutex_);
    ++asking_;
    changed_.notify_all();
    const bool met =
        changed_.wait_for(lock, std::chrono::seconds(10), [&] { return asking_ >= ask_at_once; });
    if (!met) return sluice::Status(StatusCode::kUnavailable, "asked one after the other");
    if (down_) return sluice::Status(StatusCode::kUnavailable, "no daemon runs");
    return status;
  }

  Result<uint32_t> SetPolicy(uint32_t gpu, const std::string& policy,
                             uint32_t lanes) const override {
    const std::lock_guard lock(mutex_);
    orders_.push_back(std::to_string(gpu) + " " + policy + " " + std::to_string(lanes));
    return lanes == 0 ? 2 : lanes;
  }

  void SetDown(bool down) {
    const std::lock_guard lock(mutex_);
    down_ = down;
  }
  std::vector<std::string> orders() const {
    const std::lock_guard lock(mutex_);
    return orders_;
  }
  uint64_t fetches() const {
    const std::lock_guard lock(mutex_);
    return fetches_;
  }
  int open() const {
    const std::lock_guard lock(mutex_);
    return open_;
  }
  /// Until the daemon was asked so often in all.
  void AwaitFetches(uint64_t count) const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return fetches_ >= count; });
  }
  void AwaitConnects(uint64_t count) const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return connects_ >= count; });
  }
  void AwaitNoneOpen() const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_ == 0; });
  }

  std::vector<uint32_t> gpus = {0};
  std::string status = R"({"gpu": 0, "gpu_name": "Fake", "jobs": [{"id": 4, "phase": "running"}]})";
  size_t padding = 0;   // bytes of an answer beyond its own
  int ask_at_once = 0;  // Status waits for so many of its kind

 private:
  class Connection final : public LiveConnection {
   public:
    explicit Connection(const FakeSource* source) : source_(source) { Count(1); }
    ~Connection() override { Count(-1); }
    Result<std::string> Fetch(uint64_t) override { return source_->Next(); }

   private:
    void Count(int by) {
      const std::lock_guard lock(source_->mutex_);
      source_->open_ += by;
      source_->changed_.notify_all();
    }
    const FakeSource* source_;
  };

  Result<std::string> Next() const {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
    if (down_) return sluice::Status(StatusCode::kUnavailable, "no daemon runs");
    const std::string number = std::to_string(++fetches_);
    std::string jobs;
    for (size_t bytes = 0; bytes < padding; bytes += 400) {
      jobs += (jobs.empty() ? "" : ",") + std::string(R"({"id": 1, "name": ")") +
              std::string(390, 'x') + "\"}";
    }
    return R"({"seq": )" + number + R"(, "now_ms": )" + number + R"(, "jobs": [)" + jobs +
           R"(], "frames": [[)" + number + ", [4, 1]]]}";
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int asking_ = 0;
  mutable uint64_t fetches_ = 0;
  mutable uint64_t connects_ = 0;
  mutable int open_ = 0;
  mutable std::vector<std::string> orders_;
  bool down_ = false;
};

}  // namespace sluice::page
