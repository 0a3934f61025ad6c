// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/collect/collector.h"

#include <chrono>
#include <optional>
#include <set>

#include "common/log/log.h"

namespace sluice::deviceplugin {

Collector::Collector(const GrantStore* store, Owners owners, int every_s)
    : store_(store), owners_(std::move(owners)), thread_([this, every_s] { Run(every_s); }) {}

Collector::~Collector() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

size_t Collector::Collect(const GrantStore& store, const Owners& owners, StaleBook* book) {
  // Before kubelet is asked: a grant that is made in between is not judged by an older answer.
  const Result<GrantStore::Listed> listed = store.List();
  if (!listed.ok() || listed->grants.empty()) return 0;
  const Result<std::vector<pods::Owned>> known = owners();
  std::optional<std::set<std::string>> in_use;
  if (known.ok()) {
    in_use.emplace();
    for (const pods::Owned& owned : *known) in_use->insert(owned.ids.begin(), owned.ids.end());
  }
  size_t removed = 0;
  for (const std::string& id : book->Judge(listed->grants, in_use)) {
    const Status gone = store.Remove(id);
    if (gone.ok()) {
      ++removed;
    } else {
      logging::Warn("grant {}: {}", id, gone.message());
    }
  }
  return removed;
}

void Collector::Run(int every_s) {
  StaleBook book;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    lock.unlock();
    const size_t removed = Collect(*store_, owners_, &book);
    if (removed > 0) logging::Info("{} grants were over", removed);
    lock.lock();
    wake_.wait_for(lock, std::chrono::seconds(every_s), [this] { return stop_; });
  }
}

}  // namespace sluice::deviceplugin
