// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <optional>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/driver.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

/// Elements along one side: above all limits that devices have for arrays.
constexpr uint64_t kMostElements = 1u << 20;
constexpr unsigned kKnownFlags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST |
                                 CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER |
                                 CUDA_ARRAY3D_DEPTH_TEXTURE | CUDA_ARRAY3D_COLOR_ATTACHMENT;
constexpr unsigned kUnmappedFlags = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;

/// Bytes of one component; 0 for a format that is not one of the plain ones.
uint64_t ComponentBytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
  }
  return 0;
}

/// The header's table of kinds of arrays.
bool ValidShape(const CUDA_ARRAY3D_DESCRIPTOR_v2& d) {
  if (d.Width == 0 || d.Width > kMostElements || d.Height > kMostElements ||
      d.Depth > kMostElements) {
    return false;
  }
  const bool layered = (d.Flags & CUDA_ARRAY3D_LAYERED) != 0;
  if ((d.Flags & CUDA_ARRAY3D_CUBEMAP) != 0) {
    return d.Width == d.Height && (layered ? d.Depth != 0 && d.Depth % 6 == 0 : d.Depth == 6);
  }
  if (layered) return d.Depth != 0;
  if ((d.Flags & CUDA_ARRAY3D_TEXTURE_GATHER) != 0 && (d.Height == 0 || d.Depth != 0)) return false;
  return d.Depth == 0 || d.Height != 0;
}

CUresult Check(const CUDA_ARRAY3D_DESCRIPTOR_v2& d) {
  if ((d.Flags & ~(kKnownFlags | kUnmappedFlags)) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((d.Flags & kUnmappedFlags) != 0) return NotSupported("an array that is mapped later");
  if (ComponentBytes(d.Format) == 0) return NotSupported("an array of this format");
  const bool channels = d.NumChannels == 1 || d.NumChannels == 2 || d.NumChannels == 4;
  return channels && ValidShape(d) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

uint64_t Bytes(const CUDA_ARRAY3D_DESCRIPTOR_v2& d) {
  return d.Width * ComponentBytes(d.Format) * d.NumChannels * std::max<uint64_t>(d.Height, 1) *
         std::max<uint64_t>(d.Depth, 1);
}

/// The size of a mipmap level; layers stay.
CUDA_ARRAY3D_DESCRIPTOR_v2 Level(CUDA_ARRAY3D_DESCRIPTOR_v2 d, unsigned level) {
  const auto halve = [level](size_t side) {
    return side == 0 ? 0 : std::max<size_t>(side >> level, 1);
  };
  d.Width = halve(d.Width);
  d.Height = halve(d.Height);
  if ((d.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) == 0) d.Depth = halve(d.Depth);
  return d;
}

/// With the context's lock held.
std::optional<uint64_t> Take(Context* context, uint64_t bytes) {
  Heap* heap = context->array_heap();
  if (heap == nullptr) return std::nullopt;
  std::optional<uint64_t> address = heap->Alloc(bytes, StreamMark::kNone);
  if (!address) {
    context->EmptyPools();
    address = heap->Alloc(bytes, StreamMark::kNone);
  }
  return address;
}

CUarray NewArray(Context* context, const CUDA_ARRAY3D_DESCRIPTOR_v2& descriptor, uint64_t address,
                 bool is_level) {
  CUarray array = context->driver()->arrays.New();
  array->context = context;
  array->descriptor = descriptor;
  array->address = address;
  array->element_bytes = ComponentBytes(descriptor.Format) * descriptor.NumChannels;
  array->is_level = is_level;
  return array;
}

/// Gives the bytes back when the work of the context that may use them is over.
CUresult GiveBack(Context* context, uint64_t address) {
  std::vector<uint64_t> marks;
  {
    const std::lock_guard lock(context->mutex);
    marks = context->AllMarks();
  }
  const CUresult result = context->WaitFor(marks);
  const std::lock_guard lock(context->mutex);
  if (Heap* heap = context->array_heap()) {
    heap->Free(address, {});
    heap->Trim(0);
  }
  return result;
}

/// Whether a handle lives and so does its context.
template <typename T>
bool Usable(T* handle) {
  return IsLive(handle) && !handle->context->destroyed();
}

}  // namespace

CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR_v2* descriptor) {
  Context* context = nullptr;
  CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (const CUresult unsafe = UnsafeInCapture(); unsafe != CUDA_SUCCESS) return unsafe;
  if (array == nullptr || descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  result = Check(*descriptor);
  if (result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(context->mutex);
  const std::optional<uint64_t> address = Take(context, Bytes(*descriptor));
  if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
  *array = NewArray(context, *descriptor, *address, false);
  return CUDA_SUCCESS;
}

CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR_v2* descriptor) {
  if (descriptor == nullptr) return cuArray3DCreate_v2(array, nullptr);
  const CUDA_ARRAY3D_DESCRIPTOR_v2 full{descriptor->Width,  descriptor->Height,      0,
                                        descriptor->Format, descriptor->NumChannels, 0};
  return cuArray3DCreate_v2(array, &full);
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR_v2* descriptor, CUarray array) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!Usable(array)) return CUDA_ERROR_INVALID_HANDLE;
  *descriptor = array->descriptor;
  return CUDA_SUCCESS;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR_v2* descriptor, CUarray array) {
  if (descriptor == nullptr) return cuArray3DGetDescriptor_v2(nullptr, array);
  CUDA_ARRAY3D_DESCRIPTOR_v2 full{};
  const CUresult result = cuArray3DGetDescriptor_v2(&full, array);
  if (result == CUDA_SUCCESS)
    *descriptor = {full.Width, full.Height, full.Format, full.NumChannels};
  return result;
}

// By the header only arrays that are mapped later have requirements, and there are none here.
CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS*, CUarray array, CUdevice) {
  if (Driver::Get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return Usable(array) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS*,
                                               CUmipmappedArray array, CUdevice) {
  if (Driver::Get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return Usable(array) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuArrayDestroy(CUarray array) {
  if (Driver::Get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (const CUresult unsafe = UnsafeInCapture(); unsafe != CUDA_SUCCESS) return unsafe;
  // A level goes with the whole.
  if (!IsLive(array) || array->is_level) return CUDA_ERROR_INVALID_HANDLE;
  Context* context = array->context;
  if (context->destroyed()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  const uint64_t address = array->address;
  context->driver()->arrays.Delete(array);
  return GiveBack(context, address);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* array,
                                const CUDA_ARRAY3D_DESCRIPTOR_v2* descriptor, unsigned levels) {
  Context* context = nullptr;
  CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (const CUresult unsafe = UnsafeInCapture(); unsafe != CUDA_SUCCESS) return unsafe;
  if (array == nullptr || descriptor == nullptr || levels == 0) return CUDA_ERROR_INVALID_VALUE;
  result = Check(*descriptor);
  if (result != CUDA_SUCCESS) return result;
  // As many as it takes to halve the longest side down to one element; more mean that many.
  uint64_t longest = std::max(descriptor->Width, descriptor->Height);
  if ((descriptor->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) == 0) {
    longest = std::max<uint64_t>(longest, descriptor->Depth);
  }
  unsigned most = 1;
  while (longest >> most != 0) ++most;
  levels = std::min(levels, most);
  uint64_t bytes = 0;
  for (unsigned i = 0; i < levels; ++i) bytes += Bytes(Level(*descriptor, i));
  const std::lock_guard lock(context->mutex);
  const std::optional<uint64_t> address = Take(context, bytes);
  if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
  CUmipmappedArray made = context->driver()->mipmapped_arrays.New();
  made->context = context;
  made->address = *address;
  made->levels.clear();
  uint64_t at = *address;
  for (unsigned i = 0; i < levels; ++i) {
    const CUDA_ARRAY3D_DESCRIPTOR_v2 level = Level(*descriptor, i);
    made->levels.push_back(NewArray(context, level, at, true));
    at += Bytes(level);
  }
  *array = made;
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayGetLevel(CUarray* level_array, CUmipmappedArray array, unsigned level) {
  Context* context = nullptr;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (!Usable(array)) return CUDA_ERROR_INVALID_HANDLE;
  if (level_array == nullptr || level >= array->levels.size()) return CUDA_ERROR_INVALID_VALUE;
  *level_array = array->levels[level];
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  if (Driver::Get() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (const CUresult unsafe = UnsafeInCapture(); unsafe != CUDA_SUCCESS) return unsafe;
  if (!IsLive(array)) return CUDA_ERROR_INVALID_HANDLE;
  Context* context = array->context;
  if (context->destroyed()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  const uint64_t address = array->address;
  for (const CUarray level : array->levels) context->driver()->arrays.Delete(level);
  context->driver()->mipmapped_arrays.Delete(array);
  return GiveBack(context, address);
}

// No array here is sparse, so there is none to map to.
CUresult cuMemMapArrayAsync(CUarrayMapInfo*, unsigned, CUstream) {
  return NotSupported("cuMemMapArrayAsync");
}
CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo*, unsigned, CUstream) {
  return NotSupported("cuMemMapArrayAsync_ptsz");
}
