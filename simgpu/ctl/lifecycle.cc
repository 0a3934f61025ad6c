// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/ctl/lifecycle.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "simgpu/sharing/gpu_folders.h"

namespace sluice::simgpu {
namespace {

constexpr uint64_t kPage = 4096;

void RemoveFiles(const std::string& dir) {
  unlink((dir + "/state").c_str());
  unlink((dir + "/machine").c_str());
  unlink((dir + "/events").c_str());
  unlink((dir + "/lives").c_str());
  unlink((dir + "/mig").c_str());
  unlink((dir + "/lost").c_str());
  rmdir((dir + "/gpu0").c_str());
}

/// One GPU in a folder of its own.
Status BringUpOne(const std::string& dir, uint64_t bytes, const std::string& machine_text,
                  bool* enforced) {
  if (mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST) {
    return Status::FromErrno(errno, "create folder " + dir);
  }
  const std::string memory = dir + "/gpu0";
  if (mkdir(memory.c_str(), 0700) != 0 && errno != EEXIST) {
    return Status::FromErrno(errno, "create folder " + memory);
  }
  bytes = (bytes + kPage - 1) / kPage * kPage;
  const std::string options = "mode=0700,size=" + std::to_string(bytes);
  *enforced = mount("simgpu", memory.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
                    options.c_str()) == 0;
  if (!*enforced && errno != EPERM && errno != EACCES) {
    const Status status = Status::FromErrno(errno, "mount a tmpfs on " + memory);
    RemoveFiles(dir);
    return status;
  }
  std::ofstream(dir + "/machine") << machine_text;
  const Status made = GpuState::Initialise(dir, bytes, *enforced);
  if (!made.ok()) {
    if (*enforced) umount2(memory.c_str(), MNT_DETACH);
    RemoveFiles(dir);
  }
  return made;
}

Status BringDownOne(const std::string& dir) {
  const std::string memory = dir + "/gpu0";
  // EINVAL: nothing is mounted there (the weaker kind of GPU).
  if (umount2(memory.c_str(), MNT_DETACH) != 0 && errno != EINVAL && errno != EPERM) {
    return Status::FromErrno(errno, "unmount " + memory);
  }
  RemoveFiles(dir);
  if (rmdir(dir.c_str()) != 0 && errno != ENOTEMPTY) {
    return Status::FromErrno(errno, "remove folder " + dir);
  }
  return {};
}

/// Those beside the first one, the last one first.
Status BringDownOthers(const std::string& dir) {
  for (uint32_t index = kMaxGpus - 1; index > 0; --index) {
    const std::string folder = GpuFolder(dir, index);
    if (access((folder + "/state").c_str(), F_OK) != 0) continue;
    const Status down = BringDownOne(folder);
    if (!down.ok()) return down;
  }
  return {};
}

}  // namespace

Status BringUp(const std::string& dir, uint32_t gpus, uint64_t bytes,
               const std::string& machine_text, bool* enforced) {
  if (access((dir + "/state").c_str(), F_OK) == 0) {
    return Status(StatusCode::kFailedPrecondition,
                  "there is a simulated GPU in '" + dir + "' already (simgpu-ctl down removes it)");
  }
  if (mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST) {
    return Status::FromErrno(errno, "create folder " + dir);
  }
  // The first one last: whoever sees it sees them all.
  Status status;
  for (uint32_t index = gpus; status.ok() && index-- > 0;) {
    const std::string folder = GpuFolder(dir, index);
    status = BringUpOne(folder, bytes, machine_text, enforced);
    // Events that processes share are those of the machine: one list for all GPUs.
    if (status.ok() && index > 0 && symlink("../events", (folder + "/events").c_str()) != 0) {
      status = Status::FromErrno(errno, "link " + folder + "/events");
    }
  }
  if (!status.ok()) static_cast<void>(BringDownOthers(dir));
  return status;
}

Status BringDown(const std::string& dir) {
  if (access((dir + "/state").c_str(), F_OK) != 0) {
    return Status(StatusCode::kNotFound, "there is no simulated GPU in '" + dir + "'");
  }
  const Status others = BringDownOthers(dir);
  return others.ok() ? BringDownOne(dir) : others;
}

}  // namespace sluice::simgpu
