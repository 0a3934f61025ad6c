// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/server/allocator.h"

#include <algorithm>

#include "deviceplugin/granule/preferred.h"

namespace sluice::deviceplugin {

Result<std::vector<Access>> Allocator::Allocate(
    const std::vector<std::vector<std::string>>& containers, uint64_t now_ns) const {
  std::vector<GrantRecord> wanted;
  for (const std::vector<std::string>& devices : containers) {
    const Result<uint32_t> gpu = GpuOf(*ids_, devices);
    if (!gpu.ok()) return gpu.status();
    wanted.push_back(
        {"", ids_->gpus()[*gpu].uuid, devices.size() * ids_->granule_bytes(), now_ns, devices});
    // Kubelet hands them out in any order.
    std::sort(wanted.back().devices.begin(), wanted.back().devices.end());
  }
  std::vector<Access> given;
  std::vector<std::string> made;
  for (GrantRecord& grant : wanted) {
    const Result<GrantRecord> kept = store_->Make(std::move(grant));
    if (!kept.ok()) {
      for (const std::string& id : made) (void)store_->Remove(id).ok();
      return kept.status();
    }
    made.push_back(kept->id);
    given.push_back(AccessTo(*kept, store_->FolderOf(kept->id), delivery_));
  }
  return given;
}

}  // namespace sluice::deviceplugin
