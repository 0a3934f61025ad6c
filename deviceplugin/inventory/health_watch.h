// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "common/nvml.h"
#include "deviceplugin/inventory/health.h"

namespace sluice::deviceplugin {

/// Asks NVML for errors, in a thread of its own because that waits, and keeps the book. `tell` is
/// called from that thread when the health of a device changes.
class HealthWatch {
 public:
  using Tell = std::function<void(size_t device, bool healthy, const std::string& why)>;
  /// Of errors that last, by the device's UUID: those of a watch before this one, and where a new
  /// one is kept. From the thread.
  struct Lasting {
    std::map<std::string, uint64_t> known;
    std::function<void(const std::string& uuid, uint64_t xid)> keep;
  };

  /// `nvml` is used by this thread alone afterwards and outlives it. Where NVML tells of no errors,
  /// every device stays healthy; a line in the log says so.
  /// Has told what is not healthy from the beginning.
  HealthWatch(Nvml* nvml, std::vector<Nvml::Gpu> gpus, HealthBook::Options options, Lasting lasting,
              Tell tell);
  /// Ends the thread, which takes no longer than one look.
  ~HealthWatch();

 private:
  void Run();
  void TellChanges();

  Nvml* nvml_;
  const std::vector<Nvml::Gpu> gpus_;
  HealthBook book_;
  std::vector<bool> told_healthy_;
  const Lasting lasting_;
  const Tell tell_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace sluice::deviceplugin
