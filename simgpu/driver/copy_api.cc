// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <cstring>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/box_copy.h"
#include "simgpu/driver/capture.h"
#include "simgpu/driver/peer_copy.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

/// Piece by piece through the staging area, so that several copies can be under way.
constexpr uint64_t kPiece = 4u << 20;

CUresult IssueCopy(Context* context, CUstream handle, bool per_thread, uint64_t target,
                   uint64_t source, uint64_t bytes, bool wait) {
  CUstream stream = nullptr;
  uint64_t id = 0;
  {
    CommandQueue::Lock lock(context->mutex);
    const CUresult result = context->Resolve(handle, per_thread, &stream);
    if (result != CUDA_SUCCESS) return result;
    Command command{};
    command.kind = CommandKind::kCopy;
    command.copy.target = target;
    command.copy.source = source;
    command.copy.bytes = bytes;
    id = context->Issue(stream, &command, lock);
    if (id == 0) return context->queue().error();
  }
  if (wait && !context->queue().Wait(stream->slot, id)) return context->queue().error();
  return CUDA_SUCCESS;
}

/// From pageable memory: the data is taken before the call returns, the copy itself follows in
/// stream order.
CUresult StageIn(Context* context, CUstream handle, bool per_thread, uint64_t target,
                 const unsigned char* source, uint64_t bytes) {
  CommandQueue::Lock lock(context->mutex);
  CUstream stream = nullptr;
  const CUresult result = context->Resolve(handle, per_thread, &stream);
  if (result != CUDA_SUCCESS) return result;
  CommandQueue& queue = context->queue();
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t n = std::min(kPiece, bytes - done);
    const std::optional<uint64_t> staged = queue.Stage(n, lock);
    if (!staged) return queue.error();
    memcpy(queue.Staged(*staged), source + done, n);
    Command command{};
    command.kind = CommandKind::kCopy;
    command.flags = kSourceStaged;
    command.copy.target = target + done;
    command.copy.source = *staged;
    command.copy.bytes = n;
    const uint64_t id = context->Issue(stream, &command, lock);
    queue.ReleaseStaged(*staged, stream->slot, id);
    if (id == 0) return queue.error();
    done += n;
  }
  return CUDA_SUCCESS;
}

/// To pageable memory: complete when the call returns.
CUresult StageOut(Context* context, CUstream handle, bool per_thread, unsigned char* target,
                  uint64_t source, uint64_t bytes) {
  CommandQueue::Lock lock(context->mutex);
  CUstream stream = nullptr;
  const CUresult result = context->Resolve(handle, per_thread, &stream);
  if (result != CUDA_SUCCESS) return result;
  CommandQueue& queue = context->queue();
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t n = std::min(kPiece, bytes - done);
    const std::optional<uint64_t> staged = queue.Stage(n, lock);
    if (!staged) return queue.error();
    Command command{};
    command.kind = CommandKind::kCopy;
    command.flags = kTargetStaged;
    command.copy.target = *staged;
    command.copy.source = source + done;
    command.copy.bytes = n;
    const uint64_t id = context->Issue(stream, &command, lock);
    bool copied = id != 0;
    if (copied) {
      lock.unlock();
      copied = queue.Wait(stream->slot, id);
      if (copied) memcpy(target + done, queue.Staged(*staged), n);
      lock.lock();
    }
    queue.ReleaseStaged(*staged, stream->slot, id);
    if (!copied) return queue.error();
    done += n;
  }
  return CUDA_SUCCESS;
}

uint64_t Address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

/// One row. `*_type` says how the program names the side.
CUDA_MEMCPY3D_v2 Row(CUmemorytype target_type, uint64_t target, CUmemorytype source_type,
                     uint64_t source, uint64_t bytes) {
  CUDA_MEMCPY3D_v2 row{};
  row.dstMemoryType = target_type;
  row.dstHost = reinterpret_cast<void*>(target);  // NOLINT(performance-no-int-to-ptr)
  row.dstDevice = target;
  row.srcMemoryType = source_type;
  row.srcHost = reinterpret_cast<const void*>(source);  // NOLINT(performance-no-int-to-ptr)
  row.srcDevice = source;
  row.WidthInBytes = bytes;
  row.Height = row.Depth = 1;
  return row;
}

CUresult HtoD(CUdeviceptr dst, const void* src, size_t bytes, CUstream stream, bool per_thread,
              bool wait) {
  Context* context = nullptr;
  const CUresult result = ContextOfCopy(stream, &context);
  if (result != CUDA_SUCCESS || bytes == 0) return result;
  if (src == nullptr || !Reachable(context, dst, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const auto row = Row(CU_MEMORYTYPE_DEVICE, dst, CU_MEMORYTYPE_HOST, Address(src), bytes);
  if (const auto captured = CaptureCopy(context, row, stream, per_thread, wait)) return *captured;
  if (Reachable(context, Address(src), bytes)) {
    return IssueCopy(context, stream, per_thread, dst, Address(src), bytes, wait);
  }
  return StageIn(context, stream, per_thread, dst, static_cast<const unsigned char*>(src), bytes);
}

CUresult DtoH(void* dst, CUdeviceptr src, size_t bytes, CUstream stream, bool per_thread,
              bool wait) {
  Context* context = nullptr;
  const CUresult result = ContextOfCopy(stream, &context);
  if (result != CUDA_SUCCESS || bytes == 0) return result;
  if (dst == nullptr || !Reachable(context, src, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const auto row = Row(CU_MEMORYTYPE_HOST, Address(dst), CU_MEMORYTYPE_DEVICE, src, bytes);
  if (const auto captured = CaptureCopy(context, row, stream, per_thread, wait)) return *captured;
  if (Reachable(context, Address(dst), bytes)) {
    return IssueCopy(context, stream, per_thread, Address(dst), src, bytes, wait);
  }
  return StageOut(context, stream, per_thread, static_cast<unsigned char*>(dst), src, bytes);
}

/// `null_stream`: in the one of the current context, also by the name of the call.
CUresult DtoD(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream, bool per_thread,
              bool null_stream = false) {
  Context* context = nullptr;
  const CUresult result = ContextOfCopy(stream, &context);
  if (result != CUDA_SUCCESS || bytes == 0) return result;
  if (!Reachable(context, dst, bytes) || !Reachable(context, src, bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto row = Row(CU_MEMORYTYPE_DEVICE, dst, CU_MEMORYTYPE_DEVICE, src, bytes);
  if (const auto captured = CaptureCopy(context, row, stream, per_thread, false)) return *captured;
  const bool between = null_stream && BetweenGpus(context, dst, src);
  if (between) {
    const CUresult finished = FinishGpusOf(context, dst, src);
    if (finished != CUDA_SUCCESS) return finished;
  }
  return IssueCopy(context, stream, per_thread, dst, src, bytes, between);
}

}  // namespace

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void* src, size_t bytes) {
  return HtoD(dst, src, bytes, nullptr, false, true);
}
CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dst, const void* src, size_t bytes) {
  return HtoD(dst, src, bytes, nullptr, true, true);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void* src, size_t bytes, CUstream stream) {
  return HtoD(dst, src, bytes, stream, false, false);
}
CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dst, const void* src, size_t bytes,
                                   CUstream stream) {
  return HtoD(dst, src, bytes, stream, true, false);
}
CUresult cuMemcpyDtoH_v2(void* dst, CUdeviceptr src, size_t bytes) {
  return DtoH(dst, src, bytes, nullptr, false, true);
}
CUresult cuMemcpyDtoH_v2_ptds(void* dst, CUdeviceptr src, size_t bytes) {
  return DtoH(dst, src, bytes, nullptr, true, true);
}
CUresult cuMemcpyDtoHAsync_v2(void* dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return DtoH(dst, src, bytes, stream, false, false);
}
CUresult cuMemcpyDtoHAsync_v2_ptsz(void* dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return DtoH(dst, src, bytes, stream, true, false);
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  return DtoD(dst, src, bytes, nullptr, false, true);
}
CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  return DtoD(dst, src, bytes, nullptr, true);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return DtoD(dst, src, bytes, stream, false);
}
CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t bytes,
                                   CUstream stream) {
  return DtoD(dst, src, bytes, stream, true);
}
