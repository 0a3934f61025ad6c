// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/memory/address_space.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>

#include "simgpu/memory/process_maps.h"

namespace sluice::simgpu {
namespace {

/// Whether whatever lies in the range is anonymous and without rights: ThreadSanitizer fills the
/// gaps between its areas that way, which serves our purpose just as well.
bool Inaccessible(uint64_t address, uint64_t bytes) {
  ProcessMaps maps;
  MapLine line;
  while (maps.Next(&line)) {
    if (line.end <= address || line.start >= address + bytes) continue;
    if (line.rights[0] != '-' || line.rights[1] != '-' || line.rights[2] != '-' ||
        line.inode != 0) {
      return false;
    }
  }
  return maps.ok();
}

}  // namespace

bool AddressSpace::MapAt(uint64_t address, uint64_t bytes) {
  // The raw call: a sanitizer's mmap would refuse addresses that it does not know.
  const long at =
      syscall(SYS_mmap, address, bytes, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0L);
  if (at == -1) {
    if (errno != EEXIST || !Inaccessible(address, bytes)) return false;
    reserved_[address] = {bytes, false};
    return true;
  }
  if (static_cast<uint64_t>(at) != address) {
    syscall(SYS_munmap, at, bytes);
    return false;
  }
  reserved_[address] = {bytes, true};
  return true;
}

std::optional<uint64_t> AddressSpace::Reserve(uint64_t bytes, uint64_t alignment, uint64_t hint) {
  if (bytes == 0 || bytes > kDeviceHigh - kDeviceLow) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto up = [alignment](uint64_t a) { return (a + alignment - 1) & ~(alignment - 1); };
  const auto free_at = [&](uint64_t a) {
    if (a < kDeviceLow || a > kDeviceHigh - bytes) return false;
    const auto next = reserved_.lower_bound(a);
    if (next != reserved_.end() && next->first < a + bytes) return false;
    if (next == reserved_.begin()) return true;
    const auto before = std::prev(next);
    return before->first + before->second.bytes <= a;
  };
  if (hint != 0 && up(hint) == hint && free_at(hint) && MapAt(hint, bytes)) return hint;
  uint64_t candidate = up(kDeviceLow);
  auto next = reserved_.begin();
  while (candidate <= kDeviceHigh - bytes) {
    if (free_at(candidate) && MapAt(candidate, bytes)) return candidate;
    next = reserved_.upper_bound(candidate);
    if (next != reserved_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second.bytes > candidate) {
        candidate = up(before->first + before->second.bytes);
        continue;
      }
    }
    if (next == reserved_.end()) return std::nullopt;
    candidate = up(next->first + next->second.bytes);
  }
  return std::nullopt;
}

bool AddressSpace::Free(uint64_t address, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = reserved_.find(address);
  if (found == reserved_.end() || found->second.bytes != bytes) return false;
  if (found->second.own) syscall(SYS_munmap, address, bytes);
  reserved_.erase(found);
  return true;
}

bool AddressSpace::Contains(uint64_t address, uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  auto found = reserved_.upper_bound(address);
  if (found == reserved_.begin()) return false;
  --found;
  return bytes <= found->second.bytes && address - found->first <= found->second.bytes - bytes;
}

bool AddressSpace::Find(uint64_t address, uint64_t* start, uint64_t* bytes) const {
  const std::lock_guard lock(mutex_);
  auto found = reserved_.upper_bound(address);
  if (found == reserved_.begin()) return false;
  --found;
  if (address - found->first >= found->second.bytes) return false;
  *start = found->first;
  *bytes = found->second.bytes;
  return true;
}

}  // namespace sluice::simgpu
