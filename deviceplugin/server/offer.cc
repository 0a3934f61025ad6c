// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/server/offer.h"

#include <chrono>
#include <utility>

namespace sluice::deviceplugin {

Offer::Offer(DeviceIds ids)
    : ids_(std::move(ids)), healthy_(ids_.gpus().size(), true), refused_(ids_.gpus().size()) {}

void Offer::SetHealthy(size_t gpu, bool healthy) {
  const std::lock_guard lock(mutex_);
  if (healthy_[gpu] == healthy) return;
  healthy_[gpu] = healthy;
  ++version_;
  changed_.notify_all();
}

void Offer::SetRefused(size_t gpu, std::string why) {
  const std::lock_guard lock(mutex_);
  const bool changes = refused_[gpu].empty() != why.empty();
  refused_[gpu] = std::move(why);
  if (!changes) return;
  ++version_;
  changed_.notify_all();
}

std::string Offer::Refusal(const std::vector<std::string>& ids) const {
  const std::lock_guard lock(mutex_);
  for (const std::string& id : ids) {
    const std::optional<DevicePlace> place = ids_.Find(id);
    if (place.has_value() && !refused_[place->gpu].empty()) return refused_[place->gpu];
  }
  return "";
}

void Offer::SetWithheld(std::set<std::string> ids) { Replace(&withheld_, std::move(ids)); }

void Offer::SetDrained(std::set<std::string> ids) { Replace(&drained_, std::move(ids)); }

void Offer::Replace(std::set<std::string>* known, std::set<std::string> ids) {
  const std::lock_guard lock(mutex_);
  if (*known == ids) return;
  *known = std::move(ids);
  ++version_;
  changed_.notify_all();
}

Offer::List Offer::Await(uint64_t known, int timeout_ms) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                    [&] { return closed_ || version_ != known; });
  if (closed_ || version_ == known) return {known, {}};
  return Now();
}

Offer::List Offer::Now() const {
  List list;
  list.version = version_;
  list.entries.reserve(ids_.all().size());
  for (const std::string& id : ids_.all()) {
    const uint32_t gpu = ids_.Find(id)->gpu;
    list.entries.push_back({&id, Offered(id, gpu)});
  }
  return list;
}

bool Offer::Offered(const std::string& id, uint32_t gpu) const {
  return healthy_[gpu] && refused_[gpu].empty() && !withheld_.contains(id) &&
         !drained_.contains(id);
}

std::vector<Offer::Counts> Offer::CountsByGpu() const {
  const std::lock_guard lock(mutex_);
  std::vector<Counts> counts(ids_.gpus().size());
  for (const std::string& id : ids_.all()) {
    const uint32_t gpu = ids_.Find(id)->gpu;
    ++(!healthy_[gpu]     ? counts[gpu].unhealthy
       : Offered(id, gpu) ? counts[gpu].healthy
                          : counts[gpu].withheld);
  }
  return counts;
}

void Offer::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

bool Offer::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

}  // namespace sluice::deviceplugin
