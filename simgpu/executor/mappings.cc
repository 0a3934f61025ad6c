// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/executor/mappings.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "simgpu/memory/device_range.h"

namespace sluice::simgpu {
namespace {

void* Pointer(uint64_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

int Protection(uint64_t access) {
  return access == 0 ? PROT_NONE : access == 1 ? PROT_READ : PROT_READ | PROT_WRITE;
}

std::string Failure(const char* what) { return std::string(what) + ": " + strerror(errno); }

}  // namespace

Mappings::Mappings(int32_t client_pid) : client_pid_(client_pid) {
  const char* path = getenv("SLUICE_ORACLE");
  const char* exempt = getenv("SLUICE_ORACLE_EXEMPT");
  if (path != nullptr && (exempt == nullptr || strcmp(exempt, "1") != 0)) oracle_path_ = path;
}

std::string Mappings::MapDevice(uint64_t address, uint64_t bytes, int fd, uint64_t offset,
                                uint64_t home) {
  struct stat info;
  if (fstat(fd, &info) != 0) return Failure("fstat");
  void* at = mmap(Pointer(address), bytes, PROT_NONE,
                  MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, fd, static_cast<off_t>(offset));
  if (at == MAP_FAILED) return Failure("map device memory");
  const std::lock_guard lock(mutex_);
  device_[address] = {bytes, info.st_ino, PROT_NONE, home, {}};
  return {};
}

std::string Mappings::Protect(uint64_t address, uint64_t bytes, uint64_t access) {
  const int protection = Protection(access);
  const std::lock_guard lock(mutex_);
  if (mprotect(Pointer(address), bytes, protection) != 0) return Failure("mprotect");
  for (auto it = device_.lower_bound(address); it != device_.end(); ++it) {
    if (it->first >= address + bytes) break;
    it->second.protection = protection;
    it->second.hidden.clear();
  }
  oracle_stale_ = true;
  return {};
}

std::string Mappings::UnmapDevice(uint64_t address, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (munmap(Pointer(address), bytes) != 0) return Failure("munmap");
  device_.erase(device_.lower_bound(address), device_.lower_bound(address + bytes));
  return {};
}

std::string Mappings::MapHost(uint64_t client_address, uint64_t bytes, int fd, uint64_t offset,
                              bool writable) {
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  const auto file_offset = static_cast<off_t>(offset);
  // At the client's own address when it is free here, so that kernels can follow host pointers.
  void* at = mmap(Pointer(client_address), bytes, protection, MAP_SHARED | MAP_FIXED_NOREPLACE, fd,
                  file_offset);
  if (at == MAP_FAILED && errno == EEXIST) {
    at = mmap(nullptr, bytes, protection, MAP_SHARED, fd, file_offset);
  }
  if (at == MAP_FAILED) return Failure("map host memory");
  const std::lock_guard lock(mutex_);
  host_[client_address] = {bytes, static_cast<unsigned char*>(at)};
  return {};
}

std::string Mappings::UnmapHost(uint64_t client_address) {
  const std::lock_guard lock(mutex_);
  const auto found = host_.find(client_address);
  if (found == host_.end()) return "no such host range";
  munmap(found->second.local, found->second.bytes);
  host_.erase(found);
  return {};
}

std::string Mappings::MapShadow(uint64_t address, uint64_t bytes, int fd, uint64_t offset,
                                uint64_t home) {
  void* at =
      mmap(nullptr, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, static_cast<off_t>(offset));
  if (at == MAP_FAILED) return Failure("map another context's memory");
  const std::lock_guard lock(mutex_);
  shadow_[address] = {bytes, home, static_cast<unsigned char*>(at)};
  return {};
}

std::string Mappings::ProtectShadow(uint64_t address, uint64_t bytes, uint64_t access) {
  const std::lock_guard lock(mutex_);
  const auto* found = FindShadow(address);
  if (found == nullptr) return "no such shadow";
  unsigned char* at = found->second.local + (address - found->first);
  return mprotect(at, bytes, Protection(access)) == 0 ? std::string() : Failure("mprotect");
}

std::string Mappings::UnmapShadow(uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto found = shadow_.find(address);
  if (found == shadow_.end()) return "no such shadow";
  munmap(found->second.local, found->second.bytes);
  shadow_.erase(found);
  return {};
}

const std::pair<const uint64_t, Mappings::Shadow>* Mappings::FindShadow(uint64_t address) const {
  const auto found = shadow_.upper_bound(address);
  if (found == shadow_.begin()) return nullptr;
  const auto& shadow = *std::prev(found);
  return address - shadow.first < shadow.second.bytes ? &shadow : nullptr;
}

unsigned char* Mappings::ResolveForCopy(uint64_t address, uint64_t bytes) {
  if (IsDeviceAddress(address)) {
    const std::lock_guard lock(mutex_);
    const auto* found = FindShadow(address);
    if (found != nullptr && bytes <= found->second.bytes - (address - found->first)) {
      return found->second.local + (address - found->first);
    }
  }
  return Resolve(address, bytes);
}

uint64_t Mappings::HomeOf(uint64_t address) {
  const std::lock_guard lock(mutex_);
  if (const auto* shadow = FindShadow(address)) return shadow->second.home;
  const auto found = device_.upper_bound(address);
  if (found == device_.begin()) return own_gpu();
  const auto& device = *std::prev(found);
  return address - device.first < device.second.bytes ? device.second.home : own_gpu();
}

bool Mappings::IsHost(uint64_t address) {
  if (IsDeviceAddress(address)) return false;
  const std::lock_guard lock(mutex_);
  const auto found = host_.upper_bound(address);
  return found != host_.begin() &&
         address - std::prev(found)->first < std::prev(found)->second.bytes;
}

unsigned char* Mappings::Resolve(uint64_t address, uint64_t bytes) {
  if (IsDeviceAddress(address)) return static_cast<unsigned char*>(Pointer(address));
  const std::lock_guard lock(mutex_);
  auto found = host_.upper_bound(address);
  if (found == host_.begin()) return nullptr;
  --found;
  const uint64_t offset = address - found->first;
  if (offset > found->second.bytes || bytes > found->second.bytes - offset) return nullptr;
  return found->second.local + offset;
}

}  // namespace sluice::simgpu
