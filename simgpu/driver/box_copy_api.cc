// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/cuda/driver_api.h"
#include "simgpu/driver/allocation.h"
#include "simgpu/driver/box_copy.h"
#include "simgpu/driver/capture.h"
#include "simgpu/driver/peer_copy.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

// Copies of boxes: between linear memory, host memory and arrays.

namespace {

CUresult Copy(const CUDA_MEMCPY3D_v2& copy, CUstream stream, bool per_thread, bool wait) {
  Context* context = nullptr;
  CUresult result = ContextOfCopy(stream, &context);
  if (result != CUDA_SUCCESS) return result;
  Box box;
  result = ResolveBox(context, copy, &box);
  if (result != CUDA_SUCCESS || box.width == 0) return result;
  if (const auto captured = CaptureCopy(context, copy, stream, per_thread, wait)) return *captured;
  const bool between =
      wait && !per_thread && BetweenGpus(context, box.target.address, box.source.address);
  if (between) result = FinishGpusOf(context, box.target.address, box.source.address);
  if (result == CUDA_SUCCESS) result = CopyBox(context, box, stream, per_thread, wait);
  return between && result == CUDA_SUCCESS ? FinishAll(context) : result;
}

CUresult Copy2D(const CUDA_MEMCPY2D_v2* copy, CUstream stream, bool per_thread, bool wait) {
  return copy != nullptr ? Copy(OneLayer(*copy), stream, per_thread, wait)
                         : CUDA_ERROR_INVALID_VALUE;
}

CUresult Copy3D(const CUDA_MEMCPY3D_v2* copy, CUstream stream, bool per_thread, bool wait) {
  return copy != nullptr ? Copy(*copy, stream, per_thread, wait) : CUDA_ERROR_INVALID_VALUE;
}

/// One row between two ends.
struct End {
  CUmemorytype type = CU_MEMORYTYPE_UNIFIED;
  uint64_t address = 0;
  CUarray array = nullptr;
  size_t offset = 0;
};
End Linear(CUdeviceptr address) { return {CU_MEMORYTYPE_UNIFIED, address, nullptr, 0}; }
End OnDevice(CUdeviceptr address) { return {CU_MEMORYTYPE_DEVICE, address, nullptr, 0}; }
End Host(const void* pointer) {
  return {CU_MEMORYTYPE_HOST, reinterpret_cast<uint64_t>(pointer), nullptr, 0};
}
End Array(CUarray array, size_t offset) { return {CU_MEMORYTYPE_ARRAY, 0, array, offset}; }

CUresult CopyRow(const End& target, const End& source, size_t bytes, CUstream stream,
                 bool per_thread, bool wait) {
  CUDA_MEMCPY3D_v2 copy{};
  copy.dstMemoryType = target.type;
  copy.dstHost = reinterpret_cast<void*>(target.address);  // NOLINT(performance-no-int-to-ptr)
  copy.dstDevice = target.address;
  copy.dstArray = target.array;
  copy.dstXInBytes = target.offset;
  copy.srcMemoryType = source.type;
  copy.srcHost = reinterpret_cast<void*>(source.address);  // NOLINT(performance-no-int-to-ptr)
  copy.srcDevice = source.address;
  copy.srcArray = source.array;
  copy.srcXInBytes = source.offset;
  copy.WidthInBytes = bytes;
  copy.Height = 1;
  copy.Depth = 1;
  return Copy(copy, stream, per_thread, wait);
}

}  // namespace

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  return CopyRow(Linear(dst), Linear(src), bytes, nullptr, false, true);
}
CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  return CopyRow(Linear(dst), Linear(src), bytes, nullptr, true, true);
}
CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return CopyRow(Linear(dst), Linear(src), bytes, stream, false, false);
}
CUresult cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return CopyRow(Linear(dst), Linear(src), bytes, stream, true, false);
}
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D_v2* copy) { return Copy2D(copy, nullptr, false, true); }
CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D_v2* copy) {
  return Copy2D(copy, nullptr, true, true);
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D_v2* copy) {
  return Copy2D(copy, nullptr, false, true);
}
CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D_v2* copy) {
  return Copy2D(copy, nullptr, true, true);
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D_v2* copy, CUstream stream) {
  return Copy2D(copy, stream, false, false);
}
CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D_v2* copy, CUstream stream) {
  return Copy2D(copy, stream, true, false);
}
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D_v2* copy) { return Copy3D(copy, nullptr, false, true); }
CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D_v2* copy) {
  return Copy3D(copy, nullptr, true, true);
}
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D_v2* copy, CUstream stream) {
  return Copy3D(copy, stream, false, false);
}
CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D_v2* copy, CUstream stream) {
  return Copy3D(copy, stream, true, false);
}
CUresult cuMemcpyHtoA_v2(CUarray dst, size_t offset, const void* src, size_t bytes) {
  return CopyRow(Array(dst, offset), Host(src), bytes, nullptr, false, true);
}
CUresult cuMemcpyHtoA_v2_ptds(CUarray dst, size_t offset, const void* src, size_t bytes) {
  return CopyRow(Array(dst, offset), Host(src), bytes, nullptr, true, true);
}
CUresult cuMemcpyAtoH_v2(void* dst, CUarray src, size_t offset, size_t bytes) {
  return CopyRow(Host(dst), Array(src, offset), bytes, nullptr, false, true);
}
CUresult cuMemcpyAtoH_v2_ptds(void* dst, CUarray src, size_t offset, size_t bytes) {
  return CopyRow(Host(dst), Array(src, offset), bytes, nullptr, true, true);
}
CUresult cuMemcpyDtoA_v2(CUarray dst, size_t offset, CUdeviceptr src, size_t bytes) {
  return CopyRow(Array(dst, offset), OnDevice(src), bytes, nullptr, false, true);
}
CUresult cuMemcpyDtoA_v2_ptds(CUarray dst, size_t offset, CUdeviceptr src, size_t bytes) {
  return CopyRow(Array(dst, offset), OnDevice(src), bytes, nullptr, true, true);
}
CUresult cuMemcpyAtoD_v2(CUdeviceptr dst, CUarray src, size_t offset, size_t bytes) {
  return CopyRow(OnDevice(dst), Array(src, offset), bytes, nullptr, false, true);
}
CUresult cuMemcpyAtoD_v2_ptds(CUdeviceptr dst, CUarray src, size_t offset, size_t bytes) {
  return CopyRow(OnDevice(dst), Array(src, offset), bytes, nullptr, true, true);
}
CUresult cuMemcpyAtoA_v2(CUarray dst, size_t dst_offset, CUarray src, size_t src_offset,
                         size_t bytes) {
  return CopyRow(Array(dst, dst_offset), Array(src, src_offset), bytes, nullptr, false, true);
}
CUresult cuMemcpyAtoA_v2_ptds(CUarray dst, size_t dst_offset, CUarray src, size_t src_offset,
                              size_t bytes) {
  return CopyRow(Array(dst, dst_offset), Array(src, src_offset), bytes, nullptr, true, true);
}
CUresult cuMemcpyHtoAAsync_v2(CUarray dst, size_t offset, const void* src, size_t bytes,
                              CUstream stream) {
  return CopyRow(Array(dst, offset), Host(src), bytes, stream, false, false);
}
CUresult cuMemcpyHtoAAsync_v2_ptsz(CUarray dst, size_t offset, const void* src, size_t bytes,
                                   CUstream stream) {
  return CopyRow(Array(dst, offset), Host(src), bytes, stream, true, false);
}
CUresult cuMemcpyAtoHAsync_v2(void* dst, CUarray src, size_t offset, size_t bytes,
                              CUstream stream) {
  return CopyRow(Host(dst), Array(src, offset), bytes, stream, false, false);
}
CUresult cuMemcpyAtoHAsync_v2_ptsz(void* dst, CUarray src, size_t offset, size_t bytes,
                                   CUstream stream) {
  return CopyRow(Host(dst), Array(src, offset), bytes, stream, true, false);
}
