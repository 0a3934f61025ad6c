// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/event_queue.h"

#include <algorithm>
#include <utility>

#include "common/log/log.h"

namespace sluice::deviceplugin {
namespace {

constexpr std::chrono::milliseconds kLongestPause{30'000};

}  // namespace

EventQueue::EventQueue(Post post, Figures* figures, std::chrono::milliseconds first_pause)
    : post_(std::move(post)),
      figures_(figures),
      first_pause_(first_pause),
      thread_([this] { Run(); }) {}

EventQueue::~EventQueue() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void EventQueue::Add(Event event) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(event));
  if (waiting_.size() > kMost) {
    GiveUp(waiting_.front(), "too many wait for the API server");
    waiting_.pop_front();
  }
  wake_.notify_all();
}

void EventQueue::Run() {
  auto pause = first_pause_;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (waiting_.empty()) {
      wake_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
      continue;
    }
    Event next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    const bool done = Send(next);
    lock.lock();
    if (done) {
      pause = first_pause_;
      continue;
    }
    waiting_.push_front(std::move(next));
    wake_.wait_for(lock, pause, [this] { return stop_.load(); });
    pause = std::min(kLongestPause, 2 * pause);
  }
}

/// False: to be tried again.
bool EventQueue::Send(const Event& event) {
  const Status told = post_(event, [this] { return stop_.load(); });
  if (told.code() == StatusCode::kUnavailable) {
    logging::Debug("event on {}: {}", event.whom, told.message());
    return false;
  }
  if (told.ok() || told.code() == StatusCode::kFailedPrecondition) {
    ++figures_->events_written;
  } else {
    GiveUp(event, told.message());
  }
  return true;
}

void EventQueue::GiveUp(const Event& event, const std::string& why) {
  ++figures_->events_failed;
  logging::Warn("event on {}: {}", event.whom, why);
}

}  // namespace sluice::deviceplugin
