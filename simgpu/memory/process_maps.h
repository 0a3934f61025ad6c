// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>

namespace sluice::simgpu {

/// One line of /proc/self/maps.
struct MapLine {
  uint64_t start = 0;
  uint64_t end = 0;
  char rights[5] = {};  // "rwxs", '-' for what is missing, 'p' for private
  uint64_t offset = 0;
  unsigned major = 0;
  unsigned minor = 0;
  uint64_t inode = 0;  // 0: anonymous
};

/// Reads /proc/self/maps from its beginning.
class ProcessMaps {
 public:
  ProcessMaps() : file_(fopen("/proc/self/maps", "re"), fclose) {}
  bool ok() const { return file_ != nullptr; }
  bool Next(MapLine* line);

 private:
  std::unique_ptr<FILE, int (*)(FILE*)> file_;
};

}  // namespace sluice::simgpu
