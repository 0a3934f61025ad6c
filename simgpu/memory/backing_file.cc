// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/memory/backing_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "simgpu/memory/process_maps.h"

namespace sluice::simgpu {
namespace {

/// A descriptor of this process that refers to the same file, with the rights that the mapping has.
UniqueFd FindOpenFile(const MapLine& line, bool writable) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
  if (folder == nullptr) return {};
  while (const dirent* entry = readdir(folder.get())) {
    const int fd = atoi(entry->d_name);
    struct stat info;
    if (entry->d_name[0] == '.' || fstat(fd, &info) != 0) continue;
    if (info.st_ino != line.inode || major(info.st_dev) != line.major ||
        minor(info.st_dev) != line.minor) {
      continue;
    }
    if (writable && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDWR) continue;
    return UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  }
  return {};
}

}  // namespace

Result<BackingFile> FindBackingFile(uint64_t start, uint64_t bytes) {
  ProcessMaps maps;
  if (!maps.ok()) return Status(StatusCode::kInternal, "cannot read /proc/self/maps");
  MapLine line;
  while (maps.Next(&line)) {
    if (start < line.start || start >= line.end) continue;
    BackingFile file;
    file.writable = line.rights[1] == 'w';
    file.offset = line.offset + (start - line.start);
    if (line.rights[3] != 's') return file;
    if (start + bytes > line.end) {
      return Status(StatusCode::kInvalidArgument, "the range is not one shared mapping");
    }
    file.fd = FindOpenFile(line, file.writable);
    if (!file.fd.valid()) {
      // The program closed it after mapping. This way needs privileges.
      char path[96];
      snprintf(path, sizeof path, "/proc/self/map_files/%llx-%llx",
               static_cast<unsigned long long>(line.start),
               static_cast<unsigned long long>(line.end));
      file.fd = UniqueFd(open(path, (file.writable ? O_RDWR : O_RDONLY) | O_CLOEXEC));
    }
    if (!file.fd.valid()) {
      return Status(StatusCode::kPermissionDenied,
                    "the file behind this shared memory is closed; keep its descriptor open until "
                    "the memory is registered");
    }
    return file;
  }
  return Status(StatusCode::kInvalidArgument, "the range is not mapped");
}

}  // namespace sluice::simgpu
