// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/collect/collector.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <set>

#include "deviceplugin/collect/stale.h"
#include "deviceplugin/daemon/clock.h"

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

size_t Collector::Collect(const GrantStore& store, const Owners& owners, uint64_t now_ns) {
  // Before kubelet is asked: a grant that is made in between is not judged by an older answer.
  const Result<GrantStore::Listed> listed = store.List();
  if (!listed.ok() || listed->grants.empty()) return 0;
  const Result<std::vector<pods::Owned>> known = owners();
  std::set<std::string> in_use;
  if (known.ok()) {
    for (const pods::Owned& owned : *known) in_use.insert(owned.ids.begin(), owned.ids.end());
  }
  size_t removed = 0;
  for (const std::string& id :
       StaleGrants(listed->grants, known.ok() ? &in_use : nullptr, now_ns)) {
    const Status gone = store.Remove(id);
    if (gone.ok()) {
      ++removed;
    } else {
      spdlog::warn("grant {}: {}", id, gone.message());
    }
  }
  return removed;
}

void Collector::Run(int every_s) {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    lock.unlock();
    const size_t removed = Collect(*store_, owners_, Since1970Ns());
    if (removed > 0) spdlog::info("{} grants were over", removed);
    lock.lock();
    wake_.wait_for(lock, std::chrono::seconds(every_s), [this] { return stop_; });
  }
}

}  // namespace sluice::deviceplugin
