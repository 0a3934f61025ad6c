// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/memory/virtual_memory.h"

#include <fcntl.h>

#include <algorithm>
#include <iterator>

namespace sluice::simgpu {
namespace {

CUmemAllocationProp StandardProperties(int ordinal) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, ordinal};
  return prop;
}

}  // namespace

/// One reference of this process to physical memory. The descriptor stays open as long as it is
/// mapped, so a forked child, which inherits it, keeps the memory alive as it does on a real
/// driver.
struct VirtualMemory::Physical {
  ~Physical() {
    if (fd.valid()) home.gpu->CountRequested(-static_cast<int64_t>(bytes), payer);
    if (payer.family == Family::kVmm) home.gpu->Uncharge(bytes, payer);
  }
  DeviceUse home;
  Payer payer;  // kIpc: imported, and paid for elsewhere
  UniqueFd fd;
  uint64_t bytes = 0;
  CUmemAllocationProp prop{};
  CUmemGenericAllocationHandle handle = 0;
  uint64_t references = 0;  // of the program; mappings count through the shared_ptr
};

CUmemGenericAllocationHandle VirtualMemory::Publish(std::shared_ptr<Physical> memory) {
  memory->home.gpu->CountRequested(static_cast<int64_t>(memory->bytes), memory->payer);
  memory->handle = next_handle_++;
  memory->references = 1;
  const CUmemGenericAllocationHandle handle = memory->handle;
  handles_[handle] = std::move(memory);
  return handle;
}

std::shared_ptr<VirtualMemory::Physical> VirtualMemory::Get(
    CUmemGenericAllocationHandle handle) const {
  const auto found = handles_.find(handle);
  return found == handles_.end() ? nullptr : found->second;
}

CUresult VirtualMemory::Create(CUmemGenericAllocationHandle* out, uint64_t bytes,
                               const CUmemAllocationProp& prop) {
  if (bytes == 0 || !Aligned(bytes) || prop.type != CU_MEM_ALLOCATION_TYPE_PINNED ||
      prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto ordinal = static_cast<size_t>(prop.location.id);
  if (ordinal >= devices_->size()) return CUDA_ERROR_INVALID_DEVICE;
  if (prop.requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE &&
      prop.requestedHandleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  const DeviceUse& home = (*devices_)[ordinal];
  const Payer payer = home.PayerFor(Family::kVmm);
  Result<UniqueFd> fd = home.gpu->CreateMemory(bytes, payer);
  if (!fd.ok()) {
    return fd.status().code() == StatusCode::kResourceExhausted ? CUDA_ERROR_OUT_OF_MEMORY
                                                                : CUDA_ERROR_OPERATING_SYSTEM;
  }
  auto memory = std::make_shared<Physical>();
  memory->home = home;
  memory->payer = payer;
  memory->fd = std::move(*fd);
  memory->bytes = bytes;
  memory->prop = prop;
  *out = Publish(std::move(memory));
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::Release(CUmemGenericAllocationHandle handle) {
  const std::shared_ptr<Physical> memory = Get(handle);
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (--memory->references == 0) handles_.erase(handle);
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::Retain(CUmemGenericAllocationHandle* out, uint64_t address) {
  auto found = mappings_.upper_bound(address);
  if (found == mappings_.begin()) return CUDA_ERROR_INVALID_VALUE;
  --found;
  if (address - found->first >= found->second.bytes) return CUDA_ERROR_INVALID_VALUE;
  const std::shared_ptr<Physical>& memory = found->second.memory;
  ++memory->references;
  handles_[memory->handle] = memory;
  *out = memory->handle;
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::Map(uint64_t address, uint64_t bytes, uint64_t offset,
                            CUmemGenericAllocationHandle handle) {
  const std::shared_ptr<Physical> memory = Get(handle);
  if (memory == nullptr || bytes == 0 || !Aligned(address) || !Aligned(bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // No part of a handle, and not twice at one place: the answers are a real driver's.
  if (offset != 0 || bytes < memory->bytes) return CUDA_ERROR_NOT_SUPPORTED;
  if (bytes > memory->bytes || !space_->Contains(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const auto next = mappings_.lower_bound(address);
  if (next != mappings_.end() && next->first < address + bytes) return CUDA_ERROR_INVALID_VALUE;
  if (next != mappings_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second.bytes > address) return CUDA_ERROR_INVALID_VALUE;
  }
  ControlRequest request{};
  request.op = ControlOp::kMapMemory;
  request.a = address;
  request.b = bytes;
  request.d = static_cast<uint64_t>(memory->home.ordinal);
  const CUresult result = executors_->CallAll(request, memory->fd.get());
  if (result == CUDA_SUCCESS) mappings_[address] = {bytes, {}, memory};
  return result;
}

bool VirtualMemory::Covered(uint64_t address, uint64_t bytes) const {
  uint64_t at = address;
  while (at < address + bytes) {
    const auto found = mappings_.find(at);
    if (found == mappings_.end()) return false;
    at += found->second.bytes;
  }
  return bytes != 0 && at == address + bytes;
}

CUresult VirtualMemory::Unmap(uint64_t address, uint64_t bytes) {
  if (!Covered(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  ControlRequest request{};
  request.op = ControlOp::kUnmapMemory;
  request.a = address;
  request.b = bytes;
  const CUresult result = executors_->CallAll(request);
  mappings_.erase(mappings_.lower_bound(address), mappings_.lower_bound(address + bytes));
  return result;
}

CUresult VirtualMemory::SetAccess(uint64_t address, uint64_t bytes, int ordinal, unsigned flags) {
  if (!Covered(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  ControlRequest request{};
  request.op = ControlOp::kProtect;
  request.a = address;
  request.b = bytes;
  request.c = flags;
  const CUresult result = executors_->CallOn(ordinal, request);
  if (result != CUDA_SUCCESS) return result;
  for (auto it = mappings_.find(address); it != mappings_.end() && it->first < address + bytes;
       ++it) {
    it->second.access[static_cast<size_t>(ordinal)] = static_cast<uint8_t>(flags);
  }
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::GetAccess(unsigned long long* flags, uint64_t address, int ordinal) const {
  const std::optional<Range> range = Find(address);
  if (!range) return CUDA_ERROR_INVALID_VALUE;
  *flags = mappings_.at(range->address).access[static_cast<size_t>(ordinal)];
  return CUDA_SUCCESS;
}

bool VirtualMemory::Accessible(uint64_t address) const {
  const std::optional<Range> range = Find(address);
  if (!range) return true;
  const DeviceAccess& access = mappings_.at(range->address).access;
  return std::any_of(access.begin(), access.end(), [](uint8_t flags) { return flags != 0; });
}

CUresult VirtualMemory::Export(int* fd, CUmemGenericAllocationHandle handle) const {
  const std::shared_ptr<Physical> memory = Get(handle);
  // Only who made it exports it, as on a real driver; a descriptor itself may be handed on.
  if (memory == nullptr || memory->prop.requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE ||
      memory->payer.family == Family::kIpc) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const int copy = fcntl(memory->fd.get(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *fd = copy;
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::Import(CUmemGenericAllocationHandle* out, int fd) {
  const std::optional<MemoryFile> file = FindMemoryFile(*devices_, fd);
  if (!file) return NotMemory(fd);
  if (file->bytes == 0 || !Aligned(file->bytes)) return CUDA_ERROR_INVALID_VALUE;
  auto memory = std::make_shared<Physical>();
  memory->home = file->home;
  memory->payer = file->home.PayerFor(Family::kIpc);
  memory->fd = UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!memory->fd.valid()) return CUDA_ERROR_OPERATING_SYSTEM;
  memory->bytes = file->bytes;
  memory->prop = StandardProperties(file->home.ordinal);
  *out = Publish(std::move(memory));
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::Properties(CUmemAllocationProp* prop,
                                   CUmemGenericAllocationHandle handle) const {
  const std::shared_ptr<Physical> memory = Get(handle);
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *prop = memory->prop;
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::FreeAddress(uint64_t address, uint64_t bytes) {
  const auto inside = mappings_.lower_bound(address);
  if (inside != mappings_.end() && inside->first < address + bytes) return CUDA_ERROR_INVALID_VALUE;
  return space_->Free(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

std::optional<VirtualMemory::Range> VirtualMemory::Find(uint64_t address) const {
  auto found = mappings_.upper_bound(address);
  if (found == mappings_.begin()) return std::nullopt;
  --found;
  if (address - found->first >= found->second.bytes) return std::nullopt;
  const Physical& memory = *found->second.memory;
  Range range{found->first, found->second.bytes, memory.handle, memory.home.ordinal, 0, 0};
  space_->Find(address, &range.reserved_at, &range.reserved_bytes);
  return range;
}

CUresult VirtualMemory::Replay(ExecutorLink* link, int ordinal) const {
  for (const auto& [address, mapping] : mappings_) {
    ControlRequest request{};
    request.op = ControlOp::kMapMemory;
    request.a = address;
    request.b = mapping.bytes;
    request.d = static_cast<uint64_t>(mapping.memory->home.ordinal);
    const unsigned access = mapping.access[static_cast<size_t>(ordinal)];
    ControlReply reply = link->Call(request, mapping.memory->fd.get());
    if (reply.result == CUDA_SUCCESS && access != CU_MEM_ACCESS_FLAGS_PROT_NONE) {
      request.op = ControlOp::kProtect;
      request.c = access;
      reply = link->Call(request);
    }
    if (reply.result != CUDA_SUCCESS) return static_cast<CUresult>(reply.result);
  }
  return CUDA_SUCCESS;
}

}  // namespace sluice::simgpu
