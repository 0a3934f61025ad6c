// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/status.h"
#include "deviceplugin/inventory/foreign.h"

namespace sluice::deviceplugin {

/// Looks every few seconds who else manages the GPUs, in a thread of its own because that waits for
/// kubelet. While kubelet does not say, what it said last stands; before it ever did, nobody does.
/// Looks also whether a GPU is in MIG mode, for which kubelet is not needed: that goes before.
class ForeignWatch {
 public:
  /// May fail; the text is logged when it changes.
  using Look = std::function<Result<ForeignView>()>;
  /// Whether the GPU with this UUID is in MIG mode.
  using LookForMig = std::function<bool(const std::string& uuid)>;
  /// `manager` (or kInMigMode) empty: the GPU may be offered again. Called from the thread, and for
  /// the first look from the constructor.
  using Tell = std::function<void(size_t gpu, const std::string& manager)>;

  ForeignWatch(std::vector<std::string> uuids, Look look, LookForMig mig, Tell tell, int every_s);
  ~ForeignWatch();

  /// One look, for tests and for the thread.
  void LookOnce();

 private:
  void Run(int every_s);

  const std::vector<std::string> uuids_;
  const Look look_;
  const LookForMig mig_;
  const Tell tell_;
  ForeignBook book_;
  std::vector<std::string> told_;  // by GPU
  std::string said_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace sluice::deviceplugin
