// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/cuda/driver_api.h"
#include "simgpu/driver/box_copy.h"
#include "simgpu/driver/capture.h"
#include "simgpu/driver/graph_params.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

/// `rows` rows of `count` elements of `width` bytes, `pitch` bytes apart.
CUresult SetRows(CUdeviceptr dst, size_t pitch, unsigned value, unsigned width, size_t count,
                 size_t rows, CUstream handle, bool per_thread) {
  Context* context = nullptr;
  CUresult result = ContextOfStream(handle, &context);
  if (result != CUDA_SUCCESS || count == 0 || rows == 0) return result;
  size_t bytes = 0;  // from the first to the last
  if (count > SIZE_MAX / width || dst % width != 0 ||
      (rows > 1 && (pitch < count * width || pitch % width != 0)) ||
      __builtin_mul_overflow(rows - 1, pitch, &bytes) ||
      __builtin_add_overflow(bytes, count * width, &bytes) || !Reachable(context, dst, bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CommandQueue::Lock lock(context->mutex);
  CUstream stream = nullptr;
  bool capturing = false;
  result = context->ResolveToCapture(handle, per_thread, &stream, &capturing);
  if (result != CUDA_SUCCESS) return result;
  if (capturing) {
    lock.unlock();
    MemsetWork work;
    result = MemsetFrom({dst, pitch, value, width, count, rows},
                        reinterpret_cast<CUcontext>(context), &work);
    return result == CUDA_SUCCESS ? CaptureNode(stream, work) : result;
  }
  Command command{};
  command.kind = CommandKind::kMemset;
  command.memset = {dst, count, value, width, rows, pitch};
  return context->Issue(stream, &command, lock) != 0 ? CUDA_SUCCESS : context->queue().error();
}

CUresult Set(CUdeviceptr dst, unsigned value, unsigned width, size_t count, CUstream stream,
             bool per_thread) {
  return SetRows(dst, 0, value, width, count, 1, stream, per_thread);
}

}  // namespace

CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t count) {
  return Set(dst, value, 1, count, nullptr, false);
}
CUresult cuMemsetD8_v2_ptds(CUdeviceptr dst, unsigned char value, size_t count) {
  return Set(dst, value, 1, count, nullptr, true);
}
CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream) {
  return Set(dst, value, 1, count, stream, false);
}
CUresult cuMemsetD8Async_ptsz(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream) {
  return Set(dst, value, 1, count, stream, true);
}
CUresult cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t count) {
  return Set(dst, value, 2, count, nullptr, false);
}
CUresult cuMemsetD16_v2_ptds(CUdeviceptr dst, unsigned short value, size_t count) {
  return Set(dst, value, 2, count, nullptr, true);
}
CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream) {
  return Set(dst, value, 2, count, stream, false);
}
CUresult cuMemsetD16Async_ptsz(CUdeviceptr dst, unsigned short value, size_t count,
                               CUstream stream) {
  return Set(dst, value, 2, count, stream, true);
}
CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned value, size_t count) {
  return Set(dst, value, 4, count, nullptr, false);
}
CUresult cuMemsetD32_v2_ptds(CUdeviceptr dst, unsigned value, size_t count) {
  return Set(dst, value, 4, count, nullptr, true);
}
CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count, CUstream stream) {
  return Set(dst, value, 4, count, stream, false);
}
CUresult cuMemsetD32Async_ptsz(CUdeviceptr dst, unsigned value, size_t count, CUstream stream) {
  return Set(dst, value, 4, count, stream, true);
}
CUresult cuMemsetD2D8_v2(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
                         size_t height) {
  return SetRows(dst, pitch, value, 1, width, height, nullptr, false);
}
CUresult cuMemsetD2D8_v2_ptds(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
                              size_t height) {
  return SetRows(dst, pitch, value, 1, width, height, nullptr, true);
}
CUresult cuMemsetD2D8Async(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
                           size_t height, CUstream stream) {
  return SetRows(dst, pitch, value, 1, width, height, stream, false);
}
CUresult cuMemsetD2D8Async_ptsz(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
                                size_t height, CUstream stream) {
  return SetRows(dst, pitch, value, 1, width, height, stream, true);
}
CUresult cuMemsetD2D16_v2(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width,
                          size_t height) {
  return SetRows(dst, pitch, value, 2, width, height, nullptr, false);
}
CUresult cuMemsetD2D16_v2_ptds(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width,
                               size_t height) {
  return SetRows(dst, pitch, value, 2, width, height, nullptr, true);
}
CUresult cuMemsetD2D16Async(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width,
                            size_t height, CUstream stream) {
  return SetRows(dst, pitch, value, 2, width, height, stream, false);
}
CUresult cuMemsetD2D16Async_ptsz(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width,
                                 size_t height, CUstream stream) {
  return SetRows(dst, pitch, value, 2, width, height, stream, true);
}
CUresult cuMemsetD2D32_v2(CUdeviceptr dst, size_t pitch, unsigned value, size_t width,
                          size_t height) {
  return SetRows(dst, pitch, value, 4, width, height, nullptr, false);
}
CUresult cuMemsetD2D32_v2_ptds(CUdeviceptr dst, size_t pitch, unsigned value, size_t width,
                               size_t height) {
  return SetRows(dst, pitch, value, 4, width, height, nullptr, true);
}
CUresult cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned value, size_t width,
                            size_t height, CUstream stream) {
  return SetRows(dst, pitch, value, 4, width, height, stream, false);
}
CUresult cuMemsetD2D32Async_ptsz(CUdeviceptr dst, size_t pitch, unsigned value, size_t width,
                                 size_t height, CUstream stream) {
  return SetRows(dst, pitch, value, 4, width, height, stream, true);
}
