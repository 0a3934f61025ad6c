// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/memory/foreign_memory.h"

#include <sys/stat.h>

namespace sluice::simgpu {
namespace {

constexpr uint64_t kPage = 4096;

}  // namespace

uint64_t ForeignMemory::Length(const Mapping& mapping) {
  return (mapping.skip + mapping.bytes + kPage - 1) & ~(kPage - 1);
}

ControlRequest ForeignMemory::MapRequest(const Mappings::value_type& mapping) {
  ControlRequest request{};
  request.op = ControlOp::kMapMemory;
  request.a = mapping.first;
  request.b = Length(mapping.second);
  request.c = mapping.second.file_offset();
  request.d = static_cast<uint64_t>(mapping.second.home.ordinal);
  return request;
}

ControlRequest ForeignMemory::AllowRequest(const Mappings::value_type& mapping) {
  ControlRequest request{};
  request.op = ControlOp::kProtect;
  request.a = mapping.first;
  request.b = Length(mapping.second);
  request.c = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return request;
}

Payer ForeignMemory::PayerOf(const Mapping& mapping) {
  return mapping.home.PayerFor(mapping.kind == Kind::kExternalBuffer ? Family::kExternal
                                                                     : Family::kIpc);
}

CUresult ForeignMemory::Open(uint64_t* out, Kind kind, UniqueFd file, uint64_t offset,
                             uint64_t bytes) {
  const std::optional<MemoryFile> found = FindMemoryFile(*devices_, file.get());
  struct stat info;
  if (!found || bytes == 0 || offset > found->bytes || bytes > found->bytes - offset ||
      fstat(file.get(), &info) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (kind == Kind::kIpcHandle) {
    for (auto& [page, mapping] : mappings_) {
      if (mapping.kind == kind && mapping.inode == info.st_ino && mapping.offset == offset &&
          mapping.home.gpu == found->home.gpu) {
        ++mapping.opened;
        *out = page + mapping.skip;
        return CUDA_SUCCESS;
      }
    }
  }
  const uint64_t skip = offset % kPage;
  GpuState* gpu = found->home.gpu;
  Mapping mapping{kind,        found->home, skip,           bytes,          offset,
                  info.st_ino, 1,           next_serial_++, std::move(file)};
  const uint64_t length = Length(mapping);
  const std::optional<uint64_t> page = space_->Reserve(length, gpu->machine().granularity);
  if (!page) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto made = mappings_.emplace(*page, std::move(mapping)).first;
  CUresult result = executors_->CallAll(MapRequest(*made), made->second.file.get());
  if (result == CUDA_SUCCESS) result = executors_->CallAll(AllowRequest(*made));
  if (result != CUDA_SUCCESS) {
    mappings_.erase(made);
    space_->Free(*page, length);
    return result;
  }
  gpu->CountRequested(static_cast<int64_t>(bytes), PayerOf(made->second));
  *out = *page + skip;
  return CUDA_SUCCESS;
}

bool ForeignMemory::OpenAgain(uint64_t* out, uint64_t inode, uint64_t offset) {
  for (auto& [page, mapping] : mappings_) {
    if (mapping.kind != Kind::kIpcHandle || mapping.inode != inode || mapping.offset != offset) {
      continue;
    }
    ++mapping.opened;
    *out = page + mapping.skip;
    return true;
  }
  return false;
}

CUresult ForeignMemory::Close(uint64_t address, Kind kind) {
  const auto found = mappings_.find(address & ~(kPage - 1));
  if (found == mappings_.end() || found->second.kind != kind ||
      found->first + found->second.skip != address) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (--found->second.opened > 0) return CUDA_SUCCESS;
  ControlRequest request{};
  request.op = ControlOp::kUnmapMemory;
  request.a = found->first;
  request.b = Length(found->second);
  const CUresult result = executors_->CallAll(request);
  found->second.home.gpu->CountRequested(-static_cast<int64_t>(found->second.bytes),
                                         PayerOf(found->second));
  space_->Free(found->first, Length(found->second));
  mappings_.erase(found);
  return result;
}

std::optional<ForeignMemory::Range> ForeignMemory::Find(uint64_t address) const {
  auto found = mappings_.upper_bound(address);
  if (found == mappings_.begin()) return std::nullopt;
  --found;
  const Mapping& mapping = found->second;
  const uint64_t start = found->first + mapping.skip;
  if (address < start || address - start >= mapping.bytes) return std::nullopt;
  return Range{mapping.kind, start, mapping.bytes, mapping.serial, mapping.home.ordinal};
}

CUresult ForeignMemory::Replay(ExecutorLink* link) const {
  for (const auto& mapping : mappings_) {
    ControlReply reply = link->Call(MapRequest(mapping), mapping.second.file.get());
    if (reply.result == CUDA_SUCCESS) reply = link->Call(AllowRequest(mapping));
    if (reply.result != CUDA_SUCCESS) return static_cast<CUresult>(reply.result);
  }
  return CUDA_SUCCESS;
}

}  // namespace sluice::simgpu
