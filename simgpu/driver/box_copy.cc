// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/driver/box_copy.h"

#include <algorithm>
#include <cstring>

namespace sluice::simgpu {
namespace {

/// Piece by piece through the staging area, so that several copies can be under way.
constexpr uint64_t kPiece = 4u << 20;
constexpr uint64_t kMaxPitch = 0x7fffffff;  // CU_DEVICE_ATTRIBUTE_MAX_PITCH

/// One side as the description has it.
struct SideText {
  uint64_t x, y, z, lod;
  CUmemorytype type;
  uint64_t host;
  CUdeviceptr device;
  CUarray array;
  uint64_t pitch, height;
};

CUresult ResolveArray(Context* context, const SideText& text, const Box& box, BoxSide* side) {
  if (!IsLive(text.array)) return CUDA_ERROR_INVALID_HANDLE;
  const CUarray_st& array = *text.array;
  if (array.context != context) return CUDA_ERROR_INVALID_CONTEXT;
  const uint64_t row = array.row_bytes();
  if (text.x % array.element_bytes != 0 || box.width % array.element_bytes != 0 || text.x > row ||
      box.width > row - text.x || text.y > array.rows() || box.rows > array.rows() - text.y ||
      text.z > array.layers() || box.layers > array.layers() - text.z) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  side->pitch = row;
  side->layer = row * array.rows();
  side->address = array.address + text.z * side->layer + text.y * side->pitch + text.x;
  return CUDA_SUCCESS;
}

/// Where a box in linear memory ends, if that is an address at all.
std::optional<uint64_t> EndOf(const SideText& text, const Box& box, uint64_t pitch, uint64_t height,
                              uint64_t base) {
  uint64_t end = 0;
  uint64_t rows = 0;
  if (__builtin_add_overflow(text.z, box.layers - 1, &rows) ||
      __builtin_mul_overflow(rows, height, &rows) ||
      __builtin_add_overflow(rows, text.y + box.rows - 1, &rows) ||
      __builtin_mul_overflow(rows, pitch, &end) ||
      __builtin_add_overflow(end, text.x + box.width, &end) ||
      __builtin_add_overflow(end, base, &end)) {
    return std::nullopt;
  }
  return end;
}

CUresult ResolveSide(Context* context, const SideText& text, const Box& box, BoxSide* side) {
  if (text.lod != 0) return CUDA_ERROR_INVALID_VALUE;
  if (text.type == CU_MEMORYTYPE_ARRAY) return ResolveArray(context, text, box, side);
  const uint64_t pitch = text.pitch != 0 ? text.pitch : text.x + box.width;
  const uint64_t height = text.height != 0 ? text.height : text.y + box.rows;
  if (text.pitch > kMaxPitch || text.x > pitch || box.width > pitch - text.x || text.y > height ||
      box.rows > height - text.y) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const uint64_t base = text.type == CU_MEMORYTYPE_HOST ? text.host : text.device;
  side->pitch = pitch;
  side->layer = pitch * height;
  side->address = base + text.z * side->layer + text.y * pitch + text.x;
  if (base == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::optional<uint64_t> end = EndOf(text, box, pitch, height, base);
  if (!end) return CUDA_ERROR_INVALID_VALUE;
  const bool reachable = Reachable(context, side->address, *end - side->address);
  switch (text.type) {
    case CU_MEMORYTYPE_DEVICE:
      return reachable ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEMORYTYPE_HOST:
    case CU_MEMORYTYPE_UNIFIED:
      side->pageable = !reachable;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

unsigned char* Host(uint64_t address) {
  return reinterpret_cast<unsigned char*>(address);  // NOLINT(performance-no-int-to-ptr)
}

/// Calls `function(offset in target, offset in source, width, rows)` for pieces that fit the
/// staging area; stops at the first failure.
template <typename F>
CUresult ForEachPiece(const Box& box, F function) {
  for (uint64_t layer = 0; layer < box.layers; ++layer) {
    for (uint64_t x = 0; x < box.width; x += kPiece) {
      const uint64_t width = std::min(kPiece, box.width - x);
      const uint64_t most = std::max<uint64_t>(kPiece / width, 1);
      for (uint64_t row = 0; row < box.rows; row += most) {
        const uint64_t rows = std::min(most, box.rows - row);
        const CUresult result =
            function(layer * box.target.layer + row * box.target.pitch + x,
                     layer * box.source.layer + row * box.source.pitch + x, width, rows);
        if (result != CUDA_SUCCESS) return result;
      }
    }
  }
  return CUDA_SUCCESS;
}

Command CopyCommand(uint64_t target, uint64_t target_pitch, uint64_t source, uint64_t source_pitch,
                    uint64_t width, uint64_t rows) {
  Command command{};
  command.kind = CommandKind::kCopy;
  command.copy.target = target;
  command.copy.source = source;
  command.copy.bytes = width;
  command.copy.rows = rows;
  command.copy.layers = 1;
  command.copy.target_pitch = target_pitch;
  command.copy.source_pitch = source_pitch;
  return command;
}

CUresult StageIn(Context* context, const Box& box, CUstream stream, CommandQueue::Lock& lock) {
  CommandQueue& queue = context->queue();
  return ForEachPiece(box, [&](uint64_t target, uint64_t source, uint64_t width, uint64_t rows) {
    const std::optional<uint64_t> staged = queue.Stage(width * rows, lock);
    if (!staged) return queue.error();
    for (uint64_t row = 0; row < rows; ++row) {
      memcpy(queue.Staged(*staged) + row * width,
             Host(box.source.address + source + row * box.source.pitch), width);
    }
    Command command =
        CopyCommand(box.target.address + target, box.target.pitch, *staged, width, width, rows);
    command.flags = kSourceStaged;
    const uint64_t id = context->Issue(stream, &command, lock);
    queue.ReleaseStaged(*staged, stream->slot, id);
    return id != 0 ? CUDA_SUCCESS : queue.error();
  });
}

CUresult StageOut(Context* context, const Box& box, CUstream stream, CommandQueue::Lock& lock) {
  CommandQueue& queue = context->queue();
  return ForEachPiece(box, [&](uint64_t target, uint64_t source, uint64_t width, uint64_t rows) {
    const std::optional<uint64_t> staged = queue.Stage(width * rows, lock);
    if (!staged) return queue.error();
    Command command =
        CopyCommand(*staged, width, box.source.address + source, box.source.pitch, width, rows);
    command.flags = kTargetStaged;
    const uint64_t id = context->Issue(stream, &command, lock);
    bool copied = id != 0;
    if (copied) {
      lock.unlock();
      copied = queue.Wait(stream->slot, id);
      for (uint64_t row = 0; copied && row < rows; ++row) {
        memcpy(Host(box.target.address + target + row * box.target.pitch),
               queue.Staged(*staged) + row * width, width);
      }
      lock.lock();
    }
    queue.ReleaseStaged(*staged, stream->slot, id);
    return copied ? CUDA_SUCCESS : queue.error();
  });
}

/// The GPU reaches neither side: the host copies when the stream has come that far.
CUresult CopyOnHost(Context* context, const Box& box, CUstream stream, CommandQueue::Lock& lock) {
  const std::vector<uint64_t> marks = context->MarksOf(stream);
  lock.unlock();
  const CUresult result = context->WaitFor(marks);
  if (result != CUDA_SUCCESS) return result;
  return ForEachPiece(box, [&](uint64_t target, uint64_t source, uint64_t width, uint64_t rows) {
    for (uint64_t row = 0; row < rows; ++row) {
      memmove(Host(box.target.address + target + row * box.target.pitch),
              Host(box.source.address + source + row * box.source.pitch), width);
    }
    return CUDA_SUCCESS;
  });
}

bool HostSide(const BoxSide& side) { return !IsDeviceAddress(side.address); }

}  // namespace

bool Reachable(Context* context, uint64_t address, uint64_t bytes) {
  if (!IsDeviceAddress(address)) return context->driver()->Pinned(address, bytes);
  if (!context->driver()->Given(address)) return false;
  context->driver()->views.AllowCopies(context->link(), address);
  return true;
}

CUDA_MEMCPY3D_v2 OneLayer(const CUDA_MEMCPY2D_v2& copy) {
  CUDA_MEMCPY3D_v2 box{};
  box.srcXInBytes = copy.srcXInBytes;
  box.srcY = copy.srcY;
  box.srcMemoryType = copy.srcMemoryType;
  box.srcHost = copy.srcHost;
  box.srcDevice = copy.srcDevice;
  box.srcArray = copy.srcArray;
  box.srcPitch = copy.srcPitch;
  box.dstXInBytes = copy.dstXInBytes;
  box.dstY = copy.dstY;
  box.dstMemoryType = copy.dstMemoryType;
  box.dstHost = copy.dstHost;
  box.dstDevice = copy.dstDevice;
  box.dstArray = copy.dstArray;
  box.dstPitch = copy.dstPitch;
  box.WidthInBytes = copy.WidthInBytes;
  box.Height = copy.Height;
  box.Depth = 1;
  return box;
}

CUresult ResolveBox(Context* context, const CUDA_MEMCPY3D_v2& copy, Box* box) {
  *box = {};
  if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return CUDA_SUCCESS;
  Box full;
  full.width = copy.WidthInBytes;
  full.rows = copy.Height;
  full.layers = copy.Depth;
  const SideText target{copy.dstXInBytes,   copy.dstY,
                        copy.dstZ,          copy.dstLOD,
                        copy.dstMemoryType, reinterpret_cast<uint64_t>(copy.dstHost),
                        copy.dstDevice,     copy.dstArray,
                        copy.dstPitch,      copy.dstHeight};
  const SideText source{copy.srcXInBytes,   copy.srcY,
                        copy.srcZ,          copy.srcLOD,
                        copy.srcMemoryType, reinterpret_cast<uint64_t>(copy.srcHost),
                        copy.srcDevice,     copy.srcArray,
                        copy.srcPitch,      copy.srcHeight};
  CUresult result = ResolveSide(context, target, full, &full.target);
  if (result == CUDA_SUCCESS) result = ResolveSide(context, source, full, &full.source);
  if (result == CUDA_SUCCESS) *box = full;
  return result;
}

CUresult CopyBox(Context* context, const Box& box, CUstream handle, bool per_thread, bool wait) {
  if (box.width == 0) return CUDA_SUCCESS;
  CUstream stream = nullptr;
  uint64_t id = 0;
  {
    CommandQueue::Lock lock(context->mutex);
    const CUresult result = context->Resolve(handle, per_thread, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (box.target.pageable && box.source.pageable) return CopyOnHost(context, box, stream, lock);
    if (box.source.pageable) return StageIn(context, box, stream, lock);
    if (box.target.pageable) return StageOut(context, box, stream, lock);
    Command command = CopyCommand(box.target.address, box.target.pitch, box.source.address,
                                  box.source.pitch, box.width, box.rows);
    command.copy.layers = box.layers;
    command.copy.target_layer = box.target.layer;
    command.copy.source_layer = box.source.layer;
    id = context->Issue(stream, &command, lock);
    if (id == 0) return context->queue().error();
  }
  if (!wait || !(HostSide(box.target) || HostSide(box.source))) return CUDA_SUCCESS;
  return context->queue().Wait(stream->slot, id) ? CUDA_SUCCESS : context->queue().error();
}

}  // namespace sluice::simgpu
