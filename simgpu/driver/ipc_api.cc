// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <fcntl.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstring>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/allocation.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names
using sluice::UniqueFd;

// The older way to share memory: a handle of 64 bytes that any process of the machine can open. As
// on a real driver it does not reach into another PID namespace.

namespace {

/// What the bytes of a handle say: a descriptor of the process that made the memory, and where in
/// that file the block lies.
struct HandleData {
  static constexpr uint64_t kMagic = 0x43504955'47434c53;
  uint64_t magic;
  int32_t pid;
  int32_t fd;
  uint64_t start;  // of the process: its number may be used again
  uint64_t space;
  uint64_t inode;  // of the file: so may the descriptor
  uint64_t offset;
  uint64_t bytes;
};
static_assert(sizeof(HandleData) <= sizeof(CUipcMemHandle));

/// The file behind a handle, not valid when it is gone.
UniqueFd OpenFile(const HandleData& data) {
  const ProcessId owner{data.pid, data.start, data.space};
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", data.pid, data.fd);
  UniqueFd file(open(path, O_RDWR | O_CLOEXEC));
  struct stat info;
  if (!file.valid() || fstat(file.get(), &info) != 0 || info.st_ino != data.inode ||
      ProcessGone(owner)) {
    return {};
  }
  return file;
}

}  // namespace

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr dptr) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // Only what cuMemAlloc made: pools and handles have ways of their own.
  const std::optional<Allocation> found = FindAllocation(context->driver(), context, dptr);
  if (!found || found->family != Family::kSync) return CUDA_ERROR_INVALID_VALUE;
  const ProcessId self = SelfProcess();
  const std::lock_guard lock(found->context->mutex);
  const Heap* heap = found->context->plain_heap();
  struct stat info;
  if (heap == nullptr || fstat(heap->file(), &info) != 0) return CUDA_ERROR_INVALID_VALUE;
  const HandleData data{HandleData::kMagic,
                        self.pid,
                        heap->file(),
                        self.start,
                        self.space,
                        info.st_ino,
                        heap->FileOffset(found->base),
                        found->bytes};
  memset(handle, 0, sizeof *handle);
  memcpy(handle, &data, sizeof data);
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* dptr, CUipcMemHandle handle, unsigned flags) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (const CUresult unsafe = UnsafeInCapture(); unsafe != CUDA_SUCCESS) return unsafe;
  HandleData data;
  memcpy(&data, &handle, sizeof data);
  if (dptr == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ||
      data.magic != HandleData::kMagic) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // A process has its own memory already, and may not have it twice.
  if (ProcessId{data.pid, data.start, data.space} == SelfProcess())
    return CUDA_ERROR_INVALID_CONTEXT;
  UniqueFd file = OpenFile(data);
  uint64_t address = 0;
  const std::lock_guard lock(context->driver()->mutex);
  if (!file.valid()) {
    // Who has it open already gets it again, whatever became of its maker.
    if (!context->driver()->foreign_memory->OpenAgain(&address, data.inode, data.offset)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *dptr = address;
    return CUDA_SUCCESS;
  }
  const CUresult opened = context->driver()->foreign_memory->Open(
      &address, ForeignMemory::Kind::kIpcHandle, std::move(file), data.offset, data.bytes);
  if (opened == CUDA_SUCCESS) *dptr = address;
  return opened;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr* dptr, CUipcMemHandle handle, unsigned flags) {
  return cuIpcOpenMemHandle_v2(dptr, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (const CUresult unsafe = UnsafeInCapture(); unsafe != CUDA_SUCCESS) return unsafe;
  // Work that uses the memory may still be queued.
  const CUresult done = FinishAll(context);
  const std::lock_guard lock(context->driver()->mutex);
  const CUresult closed =
      context->driver()->foreign_memory->Close(dptr, ForeignMemory::Kind::kIpcHandle);
  return closed != CUDA_SUCCESS ? closed : done;
}
