// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/inventory/health_watch.h"

#include <chrono>

#include "common/log/log.h"
#include "deviceplugin/daemon/clock.h"

namespace sluice::deviceplugin {
namespace {

/// How long one look takes at most: so long the end of the plugin may wait.
constexpr unsigned kLookMs = 200;
constexpr uint64_t kProbeNs = 10'000'000'000;

}  // namespace

HealthWatch::HealthWatch(Nvml* nvml, std::vector<Nvml::Gpu> gpus, HealthBook::Options options,
                         Lasting lasting, Tell tell)
    : nvml_(nvml),
      gpus_(std::move(gpus)),
      book_(gpus_.size(), std::move(options)),
      told_healthy_(gpus_.size(), true),
      lasting_(std::move(lasting)),
      tell_(std::move(tell)) {
  for (size_t i = 0; i < gpus_.size(); ++i) {
    const auto known = lasting_.known.find(gpus_[i].uuid);
    if (known != lasting_.known.end()) book_.OnXid(i, known->second, SteadyNs());
  }
  TellChanges();
  if (const Status watched = nvml_->WatchErrors(gpus_); !watched.ok()) {
    logging::Warn("errors of GPUs are not seen: {}", watched.message());
  }
  thread_ = std::thread([this] { Run(); });
}

HealthWatch::~HealthWatch() {
  stop_ = true;
  thread_.join();
}

void HealthWatch::Run() {
  uint64_t next_probe_ns = SteadyNs() + kProbeNs;
  while (!stop_) {
    const Result<std::optional<Nvml::Error>> error = nvml_->NextError(kLookMs);
    const uint64_t now = SteadyNs();
    if (!error.ok()) {
      // It does not wait then.
      std::this_thread::sleep_for(std::chrono::milliseconds(kLookMs));
    } else if (error->has_value()) {
      for (size_t i = 0; i < gpus_.size(); ++i) {
        // An error of a device without a name may be any one's.
        const bool of_it = (*error)->uuid.empty() || (*error)->uuid == gpus_[i].uuid;
        if (!of_it) continue;
        book_.OnXid(i, (*error)->xid, now);
        if (book_.Lasting(i).has_value()) lasting_.keep(gpus_[i].uuid, *book_.Lasting(i));
      }
    }
    if (now >= next_probe_ns) {
      next_probe_ns = now + kProbeNs;
      for (size_t i = 0; i < gpus_.size(); ++i) {
        const Status there = nvml_->Probe(gpus_[i].uuid);
        if (there.ok()) {
          book_.OnFound(i);
        } else {
          book_.OnLost(i, there.message(), now);
        }
      }
    }
    book_.OnTime(now);
    TellChanges();
  }
}

void HealthWatch::TellChanges() {
  for (size_t i = 0; i < gpus_.size(); ++i) {
    if (book_.healthy(i) == told_healthy_[i]) continue;
    told_healthy_[i] = book_.healthy(i);
    tell_(i, told_healthy_[i], book_.Why(i));
  }
}

}  // namespace sluice::deviceplugin
