// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/server/allocator.h"

#include <algorithm>
#include <filesystem>

#include "common/mps_folder.h"
#include "deviceplugin/granule/preferred.h"

namespace sluice::deviceplugin {

/// With MPS v3: the runtime mounts it before sluice-node can know which socket belongs there.
Status Allocator::MakeMpsFolder(const std::string& grant) const {
  if (delivery_.mps_dir.empty() || !delivery_.mps_v3) return {};
  const std::string folder = MpsJobFolder(delivery_.mps_dir, grant);
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return Status::FromErrno(failed.value(), folder);
  // Whoever made those above may have had another umask.
  const auto only_pass = std::filesystem::perms(0711);
  std::filesystem::permissions(folder, std::filesystem::perms(0755), failed);
  for (const std::string& above : {MpsJobsFolder(delivery_.mps_dir), delivery_.mps_dir}) {
    if (!failed) std::filesystem::permissions(above, only_pass, failed);
  }
  return failed ? Status::FromErrno(failed.value(), folder) : Status();
}

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
    // The record comes before the folder: one without a record is of a grant that is over.
    if (kept.ok()) made.push_back(kept->id);
    const Status ready = kept.ok() ? MakeMpsFolder(kept->id) : kept.status();
    if (!ready.ok()) {
      for (const std::string& id : made) (void)store_->Remove(id).ok();
      return ready;
    }
    given.push_back(AccessTo(*kept, store_->FolderOf(kept->id), delivery_));
  }
  return given;
}

}  // namespace sluice::deviceplugin
