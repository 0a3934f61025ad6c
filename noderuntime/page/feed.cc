// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/page/feed.h"

#include <algorithm>

namespace sluice::page {

Feed::Feed(const Source* source, uint32_t gpu, Pace pace)
    : source_(source), gpu_(gpu), pace_(pace), thread_([this] { Run(); }) {}

Feed::~Feed() {
  Stop();
  thread_.join();
}

void Feed::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

void Feed::Run() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (viewers_ == 0) {
      connection_.reset();
      changed_.wait(lock, [this] { return viewers_ > 0 || stopped_; });
      continue;
    }
    asked_ = Clock::now();
    Ask(lock);
    changed_.notify_all();
    // From the beginning of the last question, so that a slow answer makes no slower pace.
    const auto next = asked_ + (connection_ != nullptr ? pace_.poll : pace_.retry);
    changed_.wait_until(lock, next, [this] { return stopped_.load() || viewers_ == 0; });
  }
}

void Feed::Ask(std::unique_lock<std::mutex>& lock) {
  const uint64_t cursor = history_.cursor();
  lock.unlock();
  ++polls_;
  Result<LiveView> view = Status(StatusCode::kUnavailable, "not asked");
  if (connection_ == nullptr) {
    Result<std::unique_ptr<LiveConnection>> connected = source_->Connect(gpu_);
    if (connected.ok()) {
      connection_ = std::move(*connected);
    } else {
      view = connected.status();
    }
  }
  if (connection_ != nullptr) {
    const Result<std::string> json = connection_->Fetch(cursor);
    view = json.ok() ? ReadLive(*json, gpu_) : Result<LiveView>(json.status());
    if (!view.ok()) connection_.reset();
  }
  lock.lock();
  if (view.ok()) {
    history_.Add(std::move(*view));
  } else {
    history_.Lose(view.status().message());
  }
}

Feed::Viewer::Viewer(Feed* feed) : feed_(feed) {
  const std::lock_guard lock(feed_->mutex_);
  const bool first = ++feed_->viewers_ == 1 && feed_->asked_ != Clock::time_point::min();
  if (first && Clock::now() - feed_->asked_ > feed_->pace_.stale) feed_->history_.Forget();
  feed_->changed_.notify_all();
}

Feed::Viewer::~Viewer() {
  const std::lock_guard lock(feed_->mutex_);
  --feed_->viewers_;
  feed_->changed_.notify_all();
}

std::optional<History::Message> Feed::Viewer::Next(std::chrono::milliseconds longest) {
  std::unique_lock lock(feed_->mutex_);
  feed_->changed_.wait_for(lock, longest, [this] {
    return feed_->stopped_ || feed_->history_.change() != place_.change;
  });
  if (feed_->stopped_) return std::nullopt;
  return feed_->history_.Next(&place_);
}

}  // namespace sluice::page
