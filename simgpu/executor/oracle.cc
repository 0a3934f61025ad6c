// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "common/unique_fd.h"
#include "simgpu/executor/mappings.h"

/// The part of Mappings that enforces who holds which unit of the pool (common/oracle_page.h).
namespace sluice::simgpu {
namespace {

std::optional<uint32_t> HandleIndex(const OraclePage& page, uint64_t inode) {
  const uint32_t count = std::min(page.handle_count, kOracleMaxHandles);
  for (uint32_t i = 0; i < count; ++i) {
    if (page.handle_inode[i] == inode) return i;
  }
  return std::nullopt;
}

}  // namespace

/// The writer may come later than this process: asked again until the page is complete.
void Mappings::OpenOracle() {
  const UniqueFd fd(open(oracle_path_.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info;
  if (!fd.valid() || fstat(fd.get(), &info) != 0 ||
      info.st_size < static_cast<off_t>(sizeof(OraclePage))) {
    return;
  }
  void* map = mmap(nullptr, sizeof(OraclePage), PROT_READ, MAP_SHARED, fd.get(), 0);
  if (map == MAP_FAILED) return;
  const auto* page = static_cast<const OraclePage*>(map);
  const bool complete = page->magic == kOracleMagic && page->unit_bytes >= 4096 &&
                        page->unit_bytes % 4096 == 0 && page->handle_bytes % page->unit_bytes == 0;
  if (!complete) {
    munmap(map, sizeof(OraclePage));
    return;
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  oracle_ = page;
}

void Mappings::ApplyOracle() {
  if (oracle_path_.empty()) return;
  if (oracle_ == nullptr) OpenOracle();
  if (oracle_ == nullptr) return;
  const std::lock_guard lock(mutex_);
  const uint64_t changes = oracle_->changes.load(std::memory_order_acquire);
  if (changes == oracle_seen_ && !oracle_stale_) return;
  oracle_seen_ = changes;
  oracle_stale_ = false;
  const uint64_t unit = oracle_->unit_bytes;
  for (auto& [address, device] : device_) {
    if (device.protection == PROT_NONE) continue;
    const std::optional<uint32_t> handle = HandleIndex(*oracle_, device.inode);
    if (!handle) continue;
    const uint64_t first = *handle * (oracle_->handle_bytes / unit);
    const uint64_t units = device.bytes / unit;
    device.hidden.resize(units, false);
    // Runs of units with the same change, so that a whole handle costs one system call.
    for (uint64_t i = 0; i < units;) {
      const auto foreign = [&](uint64_t u) {
        const uint64_t index = first + u;
        return index < kOracleMaxUnits &&
               oracle_->unit[index].holder.load(std::memory_order_acquire) !=
                   static_cast<uint32_t>(client_pid_);
      };
      const bool hide = foreign(i);
      if (hide == device.hidden[i]) {
        ++i;
        continue;
      }
      uint64_t end = i;
      while (end < units && device.hidden[end] != hide && foreign(end) == hide) {
        device.hidden[end++] = hide;
      }
      if (end == i) continue;  // the holder moved between two looks: look again
      mprotect(reinterpret_cast<void*>(address + i * unit),  // NOLINT(performance-no-int-to-ptr)
               (end - i) * unit, hide ? PROT_NONE : device.protection);
      i = end;
    }
  }
}

bool Mappings::LiftOracle(uint64_t address, uint64_t* pool_offset) {
  if (oracle_ == nullptr) return false;
  const std::lock_guard lock(mutex_);
  auto found = device_.upper_bound(address);
  if (found == device_.begin()) return false;
  --found;
  Device& device = found->second;
  if (address - found->first >= device.bytes) return false;
  const uint64_t unit = oracle_->unit_bytes;
  const uint64_t index = (address - found->first) / unit;
  const std::optional<uint32_t> handle = HandleIndex(*oracle_, device.inode);
  if (!handle || index >= device.hidden.size() || !device.hidden[index]) return false;
  device.hidden[index] = false;
  mprotect(
      reinterpret_cast<void*>(found->first + index * unit),  // NOLINT(performance-no-int-to-ptr)
      unit, device.protection);
  *pool_offset = *handle * oracle_->handle_bytes + (address - found->first);
  return true;
}

}  // namespace sluice::simgpu
