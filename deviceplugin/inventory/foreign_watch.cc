// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/inventory/foreign_watch.h"

#include <chrono>

#include "common/log/log.h"

namespace sluice::deviceplugin {

ForeignWatch::ForeignWatch(std::vector<std::string> uuids, Look look, LookForMig mig, Tell tell,
                           int every_s)
    : uuids_(std::move(uuids)),
      look_(std::move(look)),
      mig_(std::move(mig)),
      tell_(std::move(tell)),
      book_(uuids_.size()),
      told_(uuids_.size()) {
  // Before anything is offered.
  LookOnce();
  thread_ = std::thread([this, every_s] { Run(every_s); });
}

ForeignWatch::~ForeignWatch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void ForeignWatch::LookOnce() {
  const Result<ForeignView> view = look_();
  const std::string text = view.ok() ? std::string() : view.status().message();
  if (text != said_) {
    said_ = text;
    if (view.ok()) {
      logging::Info("who else manages the GPUs is known again");
    } else {
      logging::Warn("who else manages the GPUs is not known: {}", text);
    }
  }
  if (view.ok()) book_.OnLook(ForeignManagers(uuids_, *view));
  for (size_t gpu = 0; gpu < uuids_.size(); ++gpu) {
    const std::string now = mig_(uuids_[gpu]) ? std::string(kInMigMode) : book_.Manager(gpu);
    if (now == told_[gpu]) continue;
    told_[gpu] = now;
    tell_(gpu, now);
  }
}

void ForeignWatch::Run(int every_s) {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::seconds(every_s), [this] { return stop_; })) {
    lock.unlock();
    LookOnce();
    lock.lock();
  }
}

}  // namespace sluice::deviceplugin
