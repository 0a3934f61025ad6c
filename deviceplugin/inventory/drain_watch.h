// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "common/folder_watch.h"
#include "common/grant/store.h"
#include "common/unique_fd.h"
#include "deviceplugin/granule/device_ids.h"

namespace sluice::deviceplugin {

/// Follows which GPUs are being drained (`sluice drain`), in a thread of its own. The ids and the
/// store outlive it.
class DrainWatch {
 public:
  /// Ids that nobody may be given from now on; from the thread.
  using Keep = std::function<void(std::set<std::string> ids)>;

  /// Has said what holds now. Errors: the grants' folders cannot be watched.
  static Result<std::unique_ptr<DrainWatch>> Start(const GrantStore* store, const DeviceIds* ids,
                                                   Keep keep);
  ~DrainWatch();

 private:
  DrainWatch(const GrantStore* store, const DeviceIds* ids, Keep keep, FolderWatch folder,
             UniqueFd stop);
  void Look();
  void Run();

  const GrantStore* store_;
  const DeviceIds* ids_;
  const Keep keep_;
  FolderWatch folder_;
  const UniqueFd stop_;
  std::thread thread_;
};

}  // namespace sluice::deviceplugin
