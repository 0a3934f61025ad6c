// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/memory_limits.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace sluice::simgpu {

uint64_t MemoryGroup(std::string_view path) {
  constexpr std::string_view kMount = "/sys/fs/cgroup";
  if (path.starts_with(kMount)) path.remove_prefix(kMount.size());
  while (path.ends_with('/')) path.remove_suffix(1);
  // FNV-1a, 64 bits.
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : path) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash == 0 ? 1 : hash;
}

uint64_t MemoryGroupOfSelf() {
  const char* said = std::getenv("SLUICE_SIMGPU_CGROUP");
  if (said != nullptr) return MemoryGroup(said);
  // "0::/PATH" where groups are of version 2; of a machine with version 1 alone any line will do.
  std::ifstream groups("/proc/self/cgroup");
  std::string path;
  for (std::string line; std::getline(groups, line);) {
    const size_t colon = line.rfind(':');
    if (colon == std::string::npos) continue;
    path = line.substr(colon + 1);
    if (line.starts_with("0::")) break;
  }
  return MemoryGroup(path);
}

bool SetMemoryLimit(StatePage* page, uint64_t group, uint64_t soft, uint64_t hard) {
  MemoryLimit* free = nullptr;
  for (MemoryLimit& limit : page->memory_limit) {
    if (limit.group == 0 && free == nullptr) free = &limit;
    if (limit.group != group) continue;
    free = &limit;
    break;
  }
  const bool none = soft == 0 && hard == kNoLimit;
  if (free == nullptr) return none;
  const MemoryLimit before = *free;
  *free = none ? MemoryLimit{} : MemoryLimit{group, soft, hard};
  const uint32_t was = before.group == 0 ? 0 : 1;
  page->memory_limits.fetch_add((none ? 0 : 1) - was);
  return true;
}

MemoryLimit FindMemoryLimit(const StatePage& page, uint64_t group) {
  for (const MemoryLimit& limit : page.memory_limit) {
    if (limit.group == group) return limit;
  }
  return {group, 0, kNoLimit};
}

uint64_t MemoryOfGroup(const StatePage& page, uint64_t group) {
  uint64_t bytes = 0;
  for (const ProcessEntry& process : page.process) {
    const bool runs = process.state == ProcessEntry::kRunning;
    if (runs && process.memory_group == group) bytes += process.bytes_now.load();
  }
  return bytes;
}

}  // namespace sluice::simgpu
