// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/memory/host_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <iterator>
#include <utility>

#include "simgpu/memory/backing_file.h"

namespace sluice::simgpu {
namespace {

constexpr uint64_t kPage = 4096;

uint64_t Address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }
uint64_t PageUp(uint64_t value) { return (value + kPage - 1) & ~(kPage - 1); }

void* Pointer(uint64_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

UniqueFd NewFile(uint64_t bytes) {
  UniqueFd fd(memfd_create("simgpu-pinned", MFD_CLOEXEC));
  if (fd.valid() && ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) fd.reset();
  return fd;
}

bool WriteAll(int fd, uint64_t from, uint64_t bytes) {
  uint64_t done = 0;
  while (done < bytes) {
    const ssize_t n = pwrite(fd, Pointer(from + done), bytes - done, static_cast<off_t>(done));
    if (n <= 0) return false;
    done += static_cast<uint64_t>(n);
  }
  return true;
}

ControlRequest MapRequest(uint64_t start, uint64_t bytes, uint64_t offset, bool writable) {
  ControlRequest request{};
  request.op = ControlOp::kMapHost;
  request.a = start;
  request.b = bytes;
  request.c = offset;
  request.d = writable ? 1 : 0;
  return request;
}

}  // namespace

CUresult HostMemory::Publish(uint64_t start, Range range) {
  const CUresult result = executors_->CallAll(
      MapRequest(start, range.bytes, range.offset, range.writable), range.fd.get());
  if (result != CUDA_SUCCESS) return result;
  range.serial = next_serial_++;
  ranges_[start] = std::move(range);
  return CUDA_SUCCESS;
}

/// Maps a new file where the kernel likes.
CUresult HostMemory::PublishNew(void** out, UniqueFd file, Range range) {
  void* at = mmap(nullptr, range.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  // As on a real driver, where a forked child does not get managed memory.
  if (range.kind == Kind::kManaged) madvise(at, range.bytes, MADV_DONTFORK);
  const uint64_t bytes = range.bytes;
  range.user = Address(at);
  range.fd = std::move(file);
  const CUresult result = Publish(Address(at), std::move(range));
  if (result != CUDA_SUCCESS) {
    munmap(at, bytes);
    return result;
  }
  *out = at;
  return CUDA_SUCCESS;
}

CUresult HostMemory::Allocate(void** out, uint64_t bytes, unsigned flags,
                              const ExecutorLink* owner) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  UniqueFd fd = NewFile(PageUp(bytes));
  if (!fd.valid()) return CUDA_ERROR_OUT_OF_MEMORY;
  return PublishNew(out, std::move(fd), {Kind::kAllocated, 0, bytes, flags, owner, PageUp(bytes)});
}

CUresult HostMemory::AllocateManaged(void** out, const DeviceUse& home, uint64_t bytes,
                                     unsigned flags, const ExecutorLink* owner) {
  const uint64_t rounded = PageUp(bytes);
  if (rounded < bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const Payer payer = home.PayerFor(Family::kManaged);
  Result<UniqueFd> file = home.gpu->CreateMemory(rounded, payer);
  if (!file.ok()) return CUDA_ERROR_OUT_OF_MEMORY;
  Range range{Kind::kManaged, 0, bytes, flags, owner, rounded};
  range.home = home;
  const CUresult result = PublishNew(out, std::move(*file), std::move(range));
  if (result == CUDA_SUCCESS) {
    home.gpu->CountRequested(static_cast<int64_t>(bytes), payer);
  } else {
    home.gpu->Uncharge(rounded, payer);
  }
  return result;
}

HostMemory::Ranges::iterator HostMemory::FindUser(void* pointer, Kind kind) {
  auto found = ranges_.find(Address(pointer) & ~(kPage - 1));
  if (found != ranges_.end() &&
      (found->second.user != Address(pointer) || found->second.kind != kind)) {
    found = ranges_.end();
  }
  return found;
}

CUresult HostMemory::Unpublish(const Ranges::value_type& range) {
  ControlRequest request{};
  request.op = ControlOp::kUnmapHost;
  request.a = range.first;
  const CUresult result = executors_->CallAll(request);
  if (range.second.kind != Kind::kRegistered) munmap(Pointer(range.first), range.second.bytes);
  if (range.second.kind == Kind::kManaged) {
    const DeviceUse& home = range.second.home;
    const Payer payer = home.PayerFor(Family::kManaged);
    home.gpu->CountRequested(-static_cast<int64_t>(range.second.user_bytes), payer);
    home.gpu->Uncharge(range.second.bytes, payer);
  }
  return result;
}

CUresult HostMemory::Free(void* pointer) {
  const auto found = FindUser(pointer, Kind::kAllocated);
  if (found == ranges_.end()) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Unpublish(*found);
  ranges_.erase(found);
  return result;
}

CUresult HostMemory::FreeManaged(void* pointer) {
  const auto found = FindUser(pointer, Kind::kManaged);
  if (found == ranges_.end()) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Unpublish(*found);
  ranges_.erase(found);
  return result;
}

CUresult HostMemory::Register(void* pointer, uint64_t bytes, unsigned flags,
                              const ExecutorLink* owner) {
  const uint64_t user = Address(pointer);
  if (user == 0 || bytes == 0 || user + bytes < user) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t start = user & ~(kPage - 1);
  const uint64_t length = PageUp(user + bytes) - start;
  const auto next = ranges_.lower_bound(start);
  const bool overlaps =
      (next != ranges_.end() && next->first < start + length) ||
      (next != ranges_.begin() && std::prev(next)->first + std::prev(next)->second.bytes > start);
  if (overlaps) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;

  Result<BackingFile> file = FindBackingFile(start, length);
  if (!file.ok()) {
    fprintf(stderr, "simulated GPU: cuMemHostRegister: %s\n", file.status().message().c_str());
    return file.status().code() == StatusCode::kPermissionDenied ? CUDA_ERROR_NOT_SUPPORTED
                                                                 : CUDA_ERROR_INVALID_VALUE;
  }
  if (file->fd.valid()) {
    return Publish(start, {Kind::kRegistered,
                           user,
                           bytes,
                           flags,
                           owner,
                           length,
                           file->offset,
                           file->writable,
                           0,
                           std::move(file->fd),
                           {}});
  }
  UniqueFd copy = NewFile(length);
  if (!copy.valid() || !WriteAll(copy.get(), start, length)) return CUDA_ERROR_INVALID_VALUE;
  if (mmap(Pointer(start), length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, copy.get(), 0) ==
      MAP_FAILED) {
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  return Publish(
      start,
      {Kind::kRegistered, user, bytes, flags, owner, length, 0, true, 0, std::move(copy), {}});
}

CUresult HostMemory::Unregister(void* pointer) {
  const auto found = FindUser(pointer, Kind::kRegistered);
  if (found == ranges_.end()) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  const CUresult result = Unpublish(*found);
  ranges_.erase(found);
  return result;
}

void HostMemory::DropAllOf(const ExecutorLink* owner) {
  std::erase_if(ranges_, [&](const Ranges::value_type& range) {
    if (range.second.owner != owner) return false;
    Unpublish(range);
    return true;
  });
}

bool HostMemory::Pinned(uint64_t address, uint64_t bytes) const {
  auto found = ranges_.upper_bound(address);
  if (found == ranges_.begin()) return false;
  --found;
  const uint64_t offset = address - found->first;
  return offset < found->second.bytes && bytes <= found->second.bytes - offset;
}

std::optional<HostMemory::Info> HostMemory::Find(uint64_t address) const {
  auto found = ranges_.upper_bound(address);
  if (found == ranges_.begin()) return std::nullopt;
  const Range& range = std::prev(found)->second;
  if (address < range.user || address - range.user >= range.user_bytes) return std::nullopt;
  return Info{range.kind, range.user, range.user_bytes, range.serial, range.flags, range.owner};
}

CUresult HostMemory::Replay(ExecutorLink* link) const {
  for (const auto& [start, range] : ranges_) {
    const ControlReply reply =
        link->Call(MapRequest(start, range.bytes, range.offset, range.writable), range.fd.get());
    if (reply.result != CUDA_SUCCESS) return static_cast<CUresult>(reply.result);
  }
  return CUDA_SUCCESS;
}

}  // namespace sluice::simgpu
