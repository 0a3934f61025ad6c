// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/hooks/hook_fixture.h"

// Each hooked function, called while no context is current. contexts_test runs this with and
// without Sluice and compares what it prints: one line "SYMBOL=RESULT" for a call without a stream
// or on the default stream of its kind, "SYMBOL+stream=RESULT" for one on a stream that was made.

namespace sluice::hooks {
namespace {

constexpr size_t kBytes = 2 * kMiB;

/// What the calls are about. All null: a program that has made nothing, and never had a context.
struct Objects {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  CUfunction function = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUdeviceptr to = 0;
  CUdeviceptr from = 0;
  CUdeviceptr ordered = 0;  // of cuMemAllocAsync
  CUarray arrays[2] = {};
  CUmipmappedArray mipmapped = nullptr;
  void* pinned = nullptr;
  CUdeviceptr word = 0;
  CUmemoryPool imported = nullptr;
  CUmemPoolPtrExportData exported = {};
};

class WithoutContext : public ::testing::Test {
 protected:
  static void Say(const char* symbol, const char* suffix, CUresult result) {
    std::printf("%s%s=%d\n", symbol, suffix, static_cast<int>(result));
  }
  void CallMemory();
  void CallPhysical();
  void CallPools();
  void CallReports();
  void CallCopies();
  void CallOn(CUstream stream, const char* suffix);
  void CallGraphs(CUstream stream, const char* suffix);
  void CallCaptures(CUstream stream, const char* suffix);
  void CallWaiting();
  void CallContexts();
  void CallAll() {
    CallMemory();
    CallPhysical();
    CallPools();
    CallReports();
    CallCopies();
    for (const bool own : {false, true}) {
      if (own && o_.stream == nullptr) continue;
      const char* suffix = own ? "+stream" : "";
      CallOn(own ? o_.stream : nullptr, suffix);
      CallGraphs(own ? o_.stream : nullptr, suffix);
      CallCaptures(own ? o_.stream : nullptr, suffix);
    }
    CallWaiting();
    CallContexts();
  }
  /// Allocates 64 KiB and frees it.
  static CUgraph WithMemory();

  Objects o_;
  char host_[64] = {};
};

#define CALL(symbol, ...) Say(#symbol, "", symbol(__VA_ARGS__))
#define BOTH(symbol, suffix, ...) \
  CALL(symbol, __VA_ARGS__);      \
  CALL(symbol##suffix, __VA_ARGS__)
#define PTDS(symbol, ...) BOTH(symbol, _ptds, __VA_ARGS__)
#define ON_STREAM(symbol, ...)                       \
  Say(#symbol, suffix, symbol(__VA_ARGS__, stream)); \
  Say(#symbol "_ptsz", suffix, symbol##_ptsz(__VA_ARGS__, stream))

void WithoutContext::CallMemory() {
  CUdeviceptr at = 0;
  size_t pitch = 0;
  unsigned narrow = 0;
  unsigned narrow_pitch = 0;
  CALL(cuMemAlloc_v2, &at, kBytes);
  CALL(cuMemAllocPitch_v2, &at, &pitch, 64, 64, 4);
  CALL(cuMemAlloc, &narrow, 4096);
  CALL(cuMemAllocPitch, &narrow, &narrow_pitch, 64, 64, 4);
  CALL(cuMemAllocManaged, &at, kBytes, CU_MEM_ATTACH_GLOBAL);
  CALL(cuMemFree_v2, o_.to);
  Say("cuMemFree_v2", " of cuMemAllocAsync", cuMemFree_v2(o_.ordered));
  CUarray array = nullptr;
  CUmipmappedArray mipmapped = nullptr;
  CUDA_ARRAY_DESCRIPTOR_v2 flat{64, 64, CU_AD_FORMAT_FLOAT, 1};
  CUDA_ARRAY3D_DESCRIPTOR_v2 box{64, 64, 2, CU_AD_FORMAT_FLOAT, 1, 0};
  CUDA_ARRAY_DESCRIPTOR_v1 old_flat{64, 64, CU_AD_FORMAT_FLOAT, 1};
  CUDA_ARRAY3D_DESCRIPTOR_v1 old_box{64, 64, 2, CU_AD_FORMAT_FLOAT, 1, 0};
  CALL(cuArrayCreate_v2, &array, &flat);
  CALL(cuArray3DCreate_v2, &array, &box);
  CALL(cuArrayCreate, &array, &old_flat);
  CALL(cuArray3DCreate, &array, &old_box);
  CALL(cuMipmappedArrayCreate, &mipmapped, &box, 2);
  CALL(cuArrayDestroy, o_.arrays[1]);
  CALL(cuMipmappedArrayDestroy, o_.mipmapped);
  void* pinned = nullptr;
  void* own = std::aligned_alloc(4096, 8192);
  CALL(cuMemHostAlloc, &pinned, 8192, 0);
  CALL(cuMemAllocHost_v2, &pinned, 8192);
  CALL(cuMemAllocHost, &pinned, 8192);
  CALL(cuMemFreeHost, o_.pinned);
  CALL(cuMemHostRegister_v2, own, 8192, 0);
  CALL(cuMemHostRegister, own, 8192, 0);
  CALL(cuMemHostUnregister, own);
  std::free(own);
  CUipcMemHandle ipc{};
  CALL(cuIpcOpenMemHandle, &at, ipc, 1);
  CALL(cuIpcOpenMemHandle_v2, &at, ipc, 1);
  CALL(cuIpcCloseMemHandle, o_.to);
  void* entry = nullptr;
  CALL(cuGetProcAddress, "cuMemAlloc", &entry, 11030, 0);
  CALL(cuGetProcAddress_v2, "cuMemAlloc", &entry, 12000, 0, nullptr);
}

void WithoutContext::CallPhysical() {
  constexpr auto kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUdeviceptr range = 0;
  size_t granularity = 0;
  CUmemGenericAllocationHandle handle = 0;
  CUmemGenericAllocationHandle again = 0;
  CUmemAllocationProp prop = DeviceMemory();
  const CUmemAccessDesc access = contract::ReadWrite();
  int fd = -1;
  CALL(cuMemGetAllocationGranularity, &granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  CALL(cuMemAddressReserve, &range, kBytes, 0, 0, 0);
  // Of a GPU that is none, in no shape that a driver has, and as it should be.
  prop.location.id = 99;
  Say("cuMemCreate", " on no device", cuMemCreate(&handle, kBytes, &prop, 0));
  prop.location.id = 0;
  Say("cuMemCreate", " of nothing", cuMemCreate(&handle, 0, &prop, 0));
  CALL(cuMemCreate, &handle, kBytes, &prop, 0);
  CALL(cuMemMap, range, kBytes, 0, handle, 0);
  CALL(cuMemSetAccess, range, kBytes, &access, 1);
  CALL(cuMemRetainAllocationHandle, &again, reinterpret_cast<void*>(range));
  Say("cuMemRelease", " of one more", cuMemRelease(again));
  CALL(cuMemExportToShareableHandle, &fd, handle, kFile, 0);
  CALL(cuMemImportFromShareableHandle, &again, reinterpret_cast<void*>(static_cast<uintptr_t>(fd)),
       kFile);
  Say("cuMemRelease", " of an imported one", cuMemRelease(again));
  CALL(cuMemGetAllocationPropertiesFromHandle, &prop, handle);
  CALL(cuMulticastBindMem, 0, 0, handle, 0, kBytes, 0);
  CALL(cuMulticastBindAddr, 0, 0, range, kBytes, 0);
  int shared = -1;
  CALL(cuMemGetHandleForAddressRange, &shared, range, kBytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
       0);
  CUexternalMemory external = nullptr;
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC descriptor{};
  descriptor.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  descriptor.handle.fd = fd;
  descriptor.size = kBytes;
  CALL(cuImportExternalMemory, &external, &descriptor);
  CALL(cuDestroyExternalMemory, external);
  CALL(cuMemUnmap, range, kBytes);
  CALL(cuMemRelease, handle);
  CALL(cuMemAddressFree, range, kBytes);
  // What the pool of a job can give, where that has units of this size.
  prop = DeviceMemory();
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
  Say("cuMemCreate", " for this process alone", cuMemCreate(&handle, kBytes, &prop, 0));
  Say("cuMemRelease", " of that", cuMemRelease(handle));
}

void WithoutContext::CallPools() {
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  CUmemoryPool standard = nullptr;
  CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemAccessDesc access{here, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  uint64_t value = 0;
  CALL(cuDeviceGetDefaultMemPool, &standard, 0);
  CALL(cuMemPoolCreate, &pool, &props);
  CALL(cuMemPoolSetAccess, pool, &access, 1);
  CALL(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value);
  CALL(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &(value = 0));
  CALL(cuMemPoolTrimTo, pool, 0);
  Say("cuMemPoolTrimTo", " of the default one", cuMemPoolTrimTo(standard, 0));
  CALL(cuDeviceSetMemPool, 0, pool);
  CALL(cuMemSetMemPool, &here, CU_MEM_ALLOCATION_TYPE_PINNED, standard);
  CALL(cuMemPoolDestroy, pool);
  CUdeviceptr at = 0;
  CALL(cuMemPoolImportPointer, &at, o_.imported, &o_.exported);
}

void WithoutContext::CallReports() {
  size_t bytes = 0;
  size_t total = 0;
  unsigned narrow = 0;
  unsigned narrow_total = 0;
  CALL(cuMemGetInfo_v2, &bytes, &total);
  CALL(cuDeviceTotalMem_v2, &total, 0);
  CALL(cuMemGetInfo, &narrow, &narrow_total);
  CALL(cuDeviceTotalMem, &narrow_total, 0);
  CUdeviceptr base = 0;
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* values[] = {&bytes};
  CUipcMemHandle ipc{};
  CALL(cuPointerGetAttribute, &bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, o_.to);
  CALL(cuPointerGetAttributes, 1, asked, values, o_.to);
  CALL(cuMemGetAddressRange_v2, &base, &bytes, o_.to);
  // Of stream-ordered memory, which no driver shares so: what it says without Sluice depends on how
  // the memory is made.
  CALL(cuIpcGetMemHandle, &ipc, o_.ordered);
}

void WithoutContext::CallCopies() {
  CUDA_MEMCPY2D_v2 plane{};
  plane.srcMemoryType = plane.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  plane.srcDevice = o_.from;
  plane.dstDevice = o_.to;
  plane.srcPitch = plane.dstPitch = 256;
  plane.WidthInBytes = 64;
  plane.Height = 4;
  CUDA_MEMCPY3D_v2 box{};
  box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.srcDevice = o_.from;
  box.dstDevice = o_.to;
  box.srcPitch = box.dstPitch = 256;
  box.WidthInBytes = 64;
  box.Height = 4;
  box.Depth = 1;
  CUDA_MEMCPY3D_PEER peer{};
  peer.srcMemoryType = peer.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  peer.srcDevice = o_.from;
  peer.dstDevice = o_.to;
  peer.srcPitch = peer.dstPitch = 256;
  peer.WidthInBytes = 64;
  peer.Height = 4;
  peer.Depth = 1;
  PTDS(cuMemcpyHtoD_v2, o_.to, host_, 64);
  PTDS(cuMemcpyDtoH_v2, host_, o_.from, 64);
  PTDS(cuMemcpyDtoD_v2, o_.to, o_.from, 64);
  PTDS(cuMemcpy, o_.to, o_.from, 64);
  PTDS(cuMemsetD8_v2, o_.to, 1, 64);
  PTDS(cuMemsetD16_v2, o_.to, 1, 32);
  PTDS(cuMemsetD32_v2, o_.to, 1, 16);
  PTDS(cuMemsetD2D8_v2, o_.to, 256, 1, 8, 4);
  PTDS(cuMemsetD2D16_v2, o_.to, 256, 1, 8, 4);
  PTDS(cuMemsetD2D32_v2, o_.to, 256, 1, 8, 4);
  PTDS(cuMemcpy2D_v2, &plane);
  PTDS(cuMemcpy2DUnaligned_v2, &plane);
  PTDS(cuMemcpy3D_v2, &box);
  PTDS(cuMemcpyHtoA_v2, o_.arrays[0], 0, host_, 64);
  PTDS(cuMemcpyAtoH_v2, host_, o_.arrays[0], 0, 64);
  PTDS(cuMemcpyDtoA_v2, o_.arrays[0], 0, o_.from, 64);
  PTDS(cuMemcpyAtoD_v2, o_.to, o_.arrays[0], 0, 64);
  PTDS(cuMemcpyAtoA_v2, o_.arrays[0], 0, o_.arrays[0], 64, 64);
  PTDS(cuMemcpyPeer, o_.to, o_.context, o_.from, o_.context, 64);
  PTDS(cuMemcpy3DPeer, &peer);
}

void WithoutContext::CallOn(CUstream stream, const char* suffix) {
  // Two of each kind: what a `_ptsz` frees is a block of its own.
  CUdeviceptr at = 0;
  CUmemoryPool standard = nullptr;
  EXPECT_CU(cuDeviceGetDefaultMemPool(&standard, 0));
  Say("cuMemAllocAsync", suffix, cuMemAllocAsync(&at, kBytes, stream));
  Say("cuMemFreeAsync", suffix, cuMemFreeAsync(at == 0 ? o_.ordered : at, stream));
  at = 0;
  Say("cuMemAllocAsync_ptsz", suffix, cuMemAllocAsync_ptsz(&at, kBytes, stream));
  Say("cuMemFreeAsync_ptsz", suffix, cuMemFreeAsync_ptsz(at == 0 ? o_.ordered : at, stream));
  at = 0;
  Say("cuMemAllocFromPoolAsync", suffix, cuMemAllocFromPoolAsync(&at, kBytes, standard, stream));
  if (at != 0) static_cast<void>(cuMemFreeAsync(at, stream));
  at = 0;
  Say("cuMemAllocFromPoolAsync_ptsz", suffix,
      cuMemAllocFromPoolAsync_ptsz(&at, kBytes, standard, stream));
  if (at != 0) static_cast<void>(cuMemFreeAsync(at, stream));
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  CUDA_LAUNCH_PARAMS launch{};
  launch.function = o_.function;
  launch.gridDimX = launch.gridDimY = launch.gridDimZ = 1;
  launch.blockDimX = launch.blockDimY = launch.blockDimZ = 1;
  launch.hStream = stream;
  const CUfunction f = o_.function;
#define LAUNCH(symbol) \
  Say(#symbol, suffix, symbol(f, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr))
#define COOPERATIVE(symbol) Say(#symbol, suffix, symbol(f, 1, 1, 1, 1, 1, 1, 0, stream, nullptr))
  LAUNCH(cuLaunchKernel);
  LAUNCH(cuLaunchKernel_ptsz);
  COOPERATIVE(cuLaunchCooperativeKernel);
  COOPERATIVE(cuLaunchCooperativeKernel_ptsz);
  Say("cuLaunchKernelEx", suffix, cuLaunchKernelEx(&config, f, nullptr, nullptr));
  Say("cuLaunchKernelEx_ptsz", suffix, cuLaunchKernelEx_ptsz(&config, f, nullptr, nullptr));
  Say("cuLaunchCooperativeKernelMultiDevice", suffix,
      cuLaunchCooperativeKernelMultiDevice(&launch, 1, 0));
  Say("cuLaunchGridAsync", suffix, cuLaunchGridAsync(f, 1, 1, stream));
  if (stream == nullptr) {
    CALL(cuLaunch, f);
    CALL(cuLaunchGrid, f, 1, 1);
  }
  ON_STREAM(cuMemcpyHtoDAsync_v2, o_.to, host_, 64);
  ON_STREAM(cuMemcpyDtoHAsync_v2, host_, o_.from, 64);
  ON_STREAM(cuMemcpyDtoDAsync_v2, o_.to, o_.from, 64);
  ON_STREAM(cuMemcpyAsync, o_.to, o_.from, 64);
  ON_STREAM(cuMemsetD8Async, o_.to, 1, 64);
  ON_STREAM(cuMemsetD16Async, o_.to, 1, 32);
  ON_STREAM(cuMemsetD32Async, o_.to, 1, 16);
  ON_STREAM(cuMemsetD2D8Async, o_.to, 256, 1, 8, 4);
  ON_STREAM(cuMemsetD2D16Async, o_.to, 256, 1, 8, 4);
  ON_STREAM(cuMemsetD2D32Async, o_.to, 256, 1, 8, 4);
  CUDA_MEMCPY2D_v2 plane{};
  CUDA_MEMCPY3D_v2 box{};
  CUDA_MEMCPY3D_PEER peer{};
  ON_STREAM(cuMemcpy2DAsync_v2, &plane);
  ON_STREAM(cuMemcpy3DAsync_v2, &box);
  ON_STREAM(cuMemcpy3DPeerAsync, &peer);
  ON_STREAM(cuMemcpyHtoAAsync_v2, o_.arrays[0], 0, host_, 64);
  ON_STREAM(cuMemcpyAtoHAsync_v2, host_, o_.arrays[0], 0, 64);
  ON_STREAM(cuMemcpyPeerAsync, o_.to, o_.context, o_.from, o_.context, 64);
  ON_STREAM(cuMemMapArrayAsync, nullptr, 0);
  CUstreamBatchMemOpParams op{};
  op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  op.writeValue.address = o_.word;
#define WORD(symbol) Say(#symbol, suffix, symbol(stream, o_.word, 0, 0))
  WORD(cuStreamWriteValue32_v2);
  WORD(cuStreamWriteValue32_v2_ptsz);
  WORD(cuStreamWriteValue64_v2);
  WORD(cuStreamWriteValue64_v2_ptsz);
  WORD(cuStreamWaitValue32_v2);
  WORD(cuStreamWaitValue32_v2_ptsz);
  WORD(cuStreamWaitValue64_v2);
  WORD(cuStreamWaitValue64_v2_ptsz);
  Say("cuStreamBatchMemOp_v2", suffix, cuStreamBatchMemOp_v2(stream, 1, &op, 0));
  Say("cuStreamBatchMemOp_v2_ptsz", suffix, cuStreamBatchMemOp_v2_ptsz(stream, 1, &op, 0));
}

CUgraph WithoutContext::WithMemory() {
  CUgraph graph = nullptr;
  EXPECT_CU(cuGraphCreate(&graph, 0));
  CUDA_MEM_ALLOC_NODE_PARAMS_v1 params{};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  params.bytesize = 64 * 1024;
  CUgraphNode made = nullptr;
  CUgraphNode freed = nullptr;
  EXPECT_CU(cuGraphAddMemAllocNode(&made, graph, nullptr, 0, &params));
  EXPECT_CU(cuGraphAddMemFreeNode(&freed, graph, &made, 1, params.dptr));
  return graph;
}

void WithoutContext::CallGraphs(CUstream stream, const char* suffix) {
  const CUgraph graph = WithMemory();
  CUgraphExec exec = nullptr;
  const auto say = [&](const char* symbol, CUresult result) {
    Say(symbol, suffix, result);
    if (result == CUDA_SUCCESS) Say("cuGraphExecDestroy", suffix, cuGraphExecDestroy(exec));
  };
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  say("cuGraphInstantiate", cuGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  say("cuGraphInstantiate_v2", cuGraphInstantiate_v2(&exec, graph, nullptr, nullptr, 0));
  say("cuGraphInstantiateWithFlags", cuGraphInstantiateWithFlags(&exec, graph, 0));
  say("cuGraphInstantiateWithParams", cuGraphInstantiateWithParams(&exec, graph, &params));
  say("cuGraphInstantiateWithParams_ptsz",
      cuGraphInstantiateWithParams_ptsz(&exec, graph, &params));
  EXPECT_CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
  Say("cuGraphUpload", suffix, cuGraphUpload(exec, stream));
  Say("cuGraphUpload_ptsz", suffix, cuGraphUpload_ptsz(exec, stream));
  Say("cuGraphLaunch", suffix, cuGraphLaunch(exec, stream));
  Say("cuGraphLaunch_ptsz", suffix, cuGraphLaunch_ptsz(exec, stream));
  EXPECT_CU(cuGraphExecDestroy(exec));
  Say("cuDeviceGraphMemTrim", suffix, cuDeviceGraphMemTrim(0));
}

void WithoutContext::CallCaptures(CUstream stream, const char* suffix) {
  CUgraph graph = nullptr;
  EXPECT_CU(cuGraphCreate(&graph, 0));
  CUgraph captured = nullptr;
#define CAPTURE(begin, end, ...)                     \
  Say(#begin, suffix, begin(stream, ##__VA_ARGS__)); \
  Say(#end, suffix, end(stream, &captured))
  constexpr auto kMode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  CAPTURE(cuStreamBeginCapture, cuStreamEndCapture);
  CAPTURE(cuStreamBeginCapture_ptsz, cuStreamEndCapture_ptsz);
  CAPTURE(cuStreamBeginCapture_v2, cuStreamEndCapture, kMode);
  CAPTURE(cuStreamBeginCapture_v2_ptsz, cuStreamEndCapture_ptsz, kMode);
  CAPTURE(cuStreamBeginCaptureToGraph, cuStreamEndCapture, graph, nullptr, nullptr, 0, kMode);
  CAPTURE(cuStreamBeginCaptureToGraph_ptsz, cuStreamEndCapture_ptsz, graph, nullptr, nullptr, 0,
          kMode);
  Say("cuStreamWaitEvent", suffix, cuStreamWaitEvent(stream, o_.event, 0));
  Say("cuStreamWaitEvent_ptsz", suffix, cuStreamWaitEvent_ptsz(stream, o_.event, 0));
  Say("cuStreamSynchronize", suffix, cuStreamSynchronize(stream));
  Say("cuStreamSynchronize_ptsz", suffix, cuStreamSynchronize_ptsz(stream));
}

void WithoutContext::CallWaiting() {
  CALL(cuCtxSynchronize);
  CALL(cuCtxSynchronize_v2, o_.context);
  CALL(cuEventSynchronize, o_.event);
  CALL(cuStreamDestroy, o_.stream);
  CALL(cuStreamDestroy_v2, o_.stream);
  CALL(cuModuleUnload, o_.module);
  CALL(cuLibraryUnload, o_.library);
}

/// With these, contexts come and go, and the last one at the end.
void WithoutContext::CallContexts() {
  CUcontext made = nullptr;
  const auto end = [&](const char* symbol, CUresult result, auto destroy) {
    Say(symbol, "", result);
    if (result == CUDA_SUCCESS) static_cast<void>(destroy(made));
  };
  CALL(cuCtxAttach, &made, 0);
  CALL(cuCtxDetach, o_.context);
  CALL(cuCtxDestroy, nullptr);
  CALL(cuCtxDestroy_v2, nullptr);
  end("cuCtxCreate", cuCtxCreate(&made, 0, 0), cuCtxDestroy);
  end("cuCtxCreate_v2", cuCtxCreate_v2(&made, 0, 0), cuCtxDestroy_v2);
  end("cuCtxCreate_v3", cuCtxCreate_v3(&made, nullptr, 0, 0, 0), cuCtxDestroy_v2);
  end("cuCtxCreate_v4", cuCtxCreate_v4(&made, nullptr, 0, 0), cuCtxDestroy_v2);
  end("cuGLCtxCreate", cuGLCtxCreate(&made, 0, 0), cuCtxDestroy_v2);
  end("cuGLCtxCreate_v2", cuGLCtxCreate_v2(&made, 0, 0), cuCtxDestroy_v2);
  end("cuVDPAUCtxCreate", cuVDPAUCtxCreate(&made, 0, 0, 1, nullptr), cuCtxDestroy_v2);
  end("cuVDPAUCtxCreate_v2", cuVDPAUCtxCreate_v2(&made, 0, 0, 1, nullptr), cuCtxDestroy_v2);
  if (o_.context == nullptr) {  // nobody has retained the primary one
    Say("cuDevicePrimaryCtxReset", " of none", cuDevicePrimaryCtxReset(0));
    Say("cuDevicePrimaryCtxReset_v2", " of none", cuDevicePrimaryCtxReset_v2(0));
    Say("cuDevicePrimaryCtxRelease", " of none", cuDevicePrimaryCtxRelease(0));
    Say("cuDevicePrimaryCtxRelease_v2", " of none", cuDevicePrimaryCtxRelease_v2(0));
  }
  CUdevResource sms{};
  CUdevResourceDesc desc = nullptr;
  CUgreenCtx green = nullptr;
  EXPECT_CU(cuDeviceGetDevResource(0, &sms, CU_DEV_RESOURCE_TYPE_SM));
  EXPECT_CU(cuDevResourceGenerateDesc(&desc, &sms, 1));
  CALL(cuGreenCtxCreate, &green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM);
  CALL(cuGreenCtxDestroy, green);
  CALL(cuDevicePrimaryCtxRetain, &made, 0);
  CALL(cuDevicePrimaryCtxRelease, 0);
  EXPECT_CU(cuDevicePrimaryCtxRetain(&made, 0));
  CALL(cuDevicePrimaryCtxRelease_v2, 0);
  EXPECT_CU(cuDevicePrimaryCtxRetain(&made, 0));
  CALL(cuDevicePrimaryCtxReset, 0);
  EXPECT_CU(cuDevicePrimaryCtxRetain(&made, 0));
  CALL(cuDevicePrimaryCtxReset_v2, 0);
}

// Nothing was made before.
TEST_F(WithoutContext, Bare) {
  ASSERT_CU(cuInit(0));
  CallAll();
}

// All was made while a context was current, and that is there, but current nowhere.
TEST_F(WithoutContext, Prepared) {
  ASSERT_CU(cuInit(0));
  ASSERT_CU(cuDevicePrimaryCtxRetain(&o_.context, 0));
  ASSERT_CU(cuCtxSetCurrent(o_.context));
  const std::string& image = contract::KernelImage();
  ASSERT_CU(cuModuleLoadData(&o_.module, image.c_str()));
  ASSERT_CU(cuModuleGetFunction(&o_.function, o_.module, "nothing"));
  ASSERT_CU(
      cuLibraryLoadData(&o_.library, image.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  ASSERT_CU(cuFuncSetBlockShape(o_.function, 1, 1, 1));
  ASSERT_CU(cuStreamCreate(&o_.stream, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(cuEventCreate(&o_.event, CU_EVENT_DISABLE_TIMING));
  ASSERT_CU(cuEventRecord(o_.event, o_.stream));
  ASSERT_CU(cuMemAlloc_v2(&o_.to, kBytes));
  ASSERT_CU(cuMemAlloc_v2(&o_.from, kBytes));
  ASSERT_CU(cuMemAllocAsync(&o_.ordered, kBytes, o_.stream));
  CUDA_ARRAY_DESCRIPTOR_v2 flat{4096, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  for (CUarray& array : o_.arrays) ASSERT_CU(cuArrayCreate_v2(&array, &flat));
  CUDA_ARRAY3D_DESCRIPTOR_v2 box{64, 64, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  ASSERT_CU(cuMipmappedArrayCreate(&o_.mipmapped, &box, 2));
  ASSERT_CU(cuMemHostAlloc(&o_.pinned, 8192, 0));
  // The context is gone at the end, which gives it back.
  static const auto* const word = new SharedWord;
  o_.word = word->device();
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  CUdeviceptr pooled = 0;
  int fd = -1;
  ASSERT_CU(cuMemPoolCreate(&pool, &props));
  ASSERT_CU(cuMemAllocFromPoolAsync(&pooled, kBytes, pool, o_.stream));
  ASSERT_CU(cuStreamSynchronize(o_.stream));
  ASSERT_CU(cuMemPoolExportToShareableHandle(&fd, pool, props.handleTypes, 0));
  ASSERT_CU(cuMemPoolExportPointer(&o_.exported, pooled));
  ASSERT_CU(cuMemPoolImportFromShareableHandle(
      &o_.imported, reinterpret_cast<void*>(static_cast<uintptr_t>(fd)), props.handleTypes, 0));
  CUcontext popped = nullptr;
  ASSERT_CU(cuCtxPopCurrent_v2(&popped));
  CallAll();
}

}  // namespace
}  // namespace sluice::hooks
