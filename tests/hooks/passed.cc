// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <unistd.h>

#include "tests/hooks/hook_fixture.h"

// Why functions that have to do with memory or order need no hook: intercept/hooks/passed.def names
// these tests. alone_test runs them as a job.

namespace sluice::hooks {
namespace {

constexpr auto kDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

class Passed : public Hook {
 protected:
  void SetUp() override {
    Hook::SetUp();
    Begin();
    ASSERT_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  }
  void TearDown() override {
    EXPECT_CU(cuStreamDestroy_v2(stream_));
    Hook::TearDown();
  }
  void ExpectOutside(const char* family, uint64_t bytes) {
    ExpectSoon([this, family] { return Outside(family); }, bytes);
  }
  /// Enough of everything that marks are due on the stream, several times.
  void WorkThatIsMarked() {
    for (int i = 0; i < 160; ++i) {
      CUdeviceptr at = 0;
      ASSERT_CU(cuMemAllocAsync(&at, kMiB, stream_));
      ASSERT_CU(Launch("nothing", {}, stream_));
      ASSERT_CU(cuMemFreeAsync(at, stream_));
    }
  }
  static CUmemoryPool NewPool(CUmemAllocationHandleType handles) {
    CUmemPoolProps props{};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.handleTypes = handles;
    props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemoryPool pool = nullptr;
    EXPECT_CU(cuMemPoolCreate(&pool, &props));
    return pool;
  }
  CUstream stream_ = nullptr;
};

TEST_F(Passed, NodesAreChargedWhenTheyAreInstantiated) {
  using Add = CUresult (*)(CUgraphNode*, CUgraph, CUgraphNodeParams*);
  const Add ways[] = {[](CUgraphNode* node, CUgraph graph, CUgraphNodeParams* params) {
                        return cuGraphAddNode(node, graph, nullptr, 0, params);
                      },
                      [](CUgraphNode* node, CUgraph graph, CUgraphNodeParams* params) {
                        return cuGraphAddNode_v2(node, graph, nullptr, nullptr, 0, params);
                      },
                      [](CUgraphNode* node, CUgraph graph, CUgraphNodeParams* params) {
                        return cuGraphAddMemAllocNode(node, graph, nullptr, 0, &params->alloc);
                      }};
  for (const Add& add : ways) {
    for (const size_t bytes : {kMoreThanLimit, 2 * kMiB}) {
      CUgraph graph = nullptr;
      ASSERT_CU(cuGraphCreate(&graph, 0));
      CUgraphNodeParams params{};
      params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
      params.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
      params.alloc.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
      params.alloc.bytesize = bytes;
      CUgraphNode alloc = nullptr;
      ASSERT_CU(add(&alloc, graph, &params));
      CUgraphNode free = nullptr;
      ASSERT_CU(cuGraphAddMemFreeNode(&free, graph, &alloc, 1, params.alloc.dptr));
      EXPECT_EQ(Outside("graph"), 0u) << "a node takes nothing";
      CUgraphExec exec = nullptr;
      const CUresult made = cuGraphInstantiateWithFlags(&exec, graph, 0);
      EXPECT_EQ(made, bytes > kLimit ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS);
      if (made == CUDA_SUCCESS) {
        EXPECT_EQ(Outside("graph"), bytes);
        ASSERT_CU(cuGraphDestroy(graph));
        EXPECT_EQ(Outside("graph"), bytes) << "what was instantiated has it";
        ASSERT_CU(cuGraphLaunch(exec, stream_));
        ASSERT_CU(cuStreamSynchronize(stream_));
        cuuint64_t reserved = 0;
        ASSERT_CU(
            cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved));
        EXPECT_GE(reserved, bytes);
        ExpectOutside("graph", reserved);
        ASSERT_CU(cuGraphExecDestroy(exec));
        ASSERT_CU(cuDeviceGraphMemTrim(0));
      } else {
        ASSERT_CU(cuGraphDestroy(graph));
      }
      ExpectOutside("graph", 0);
    }
  }
}

TEST_F(Passed, ExternalBuffersAreCountedOnce) {
  const CUmemAllocationProp prop = contract::DeviceMemory();
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_CU(cuMemCreate(&handle, kUnit, &prop, 0));
  int fd = -1;
  ASSERT_CU(cuMemExportToShareableHandle(&fd, handle, kDescriptor, 0));
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC from{};
  from.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  from.handle.fd = fd;
  from.size = kUnit;
  CUexternalMemory memory = nullptr;
  ASSERT_CU(cuImportExternalMemory(&memory, &from));
  ExpectOutside("imported", kUnit);
  const uint64_t physical = Outside("physical");
  CUdeviceptr mapped[2] = {};
  for (CUdeviceptr& at : mapped) {
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC whole{};
    whole.size = kUnit;
    ASSERT_CU(cuExternalMemoryGetMappedBuffer(&at, memory, &whole));
  }
  EXPECT_EQ(Outside("imported"), kUnit);
  EXPECT_EQ(Outside("physical"), physical);
  ASSERT_CU(cuMemsetD8_v2(mapped[0], 1, kUnit));
  for (const CUdeviceptr at : mapped) ASSERT_CU(cuMemFree_v2(at));
  EXPECT_EQ(Outside("imported"), kUnit);
  ASSERT_CU(cuDestroyExternalMemory(memory));
  ExpectOutside("imported", 0);
  ASSERT_CU(cuMemRelease(handle));
  ExpectOutside("physical", 0);
}

TEST_F(Passed, AddressesAreFreedWithoutTheirMemory) {
  const CUmemAllocationProp prop = contract::DeviceMemory();
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_CU(cuMemCreate(&handle, kUnit, &prop, 0));
  CUdeviceptr at = 0;
  ASSERT_CU(cuMemAddressReserve(&at, kUnit, 0, 0, 0));
  ASSERT_CU(cuMemMap(at, kUnit, 0, handle, 0));
  ASSERT_CU(cuMemRelease(handle));
  EXPECT_NE(cuMemAddressFree(at, kUnit), CUDA_SUCCESS);
  ExpectOutside("physical", kUnit);
  ASSERT_CU(cuMemUnmap(at, kUnit));
  ExpectOutside("physical", 0);
  EXPECT_CU(cuMemAddressFree(at, kUnit));
}

TEST_F(Passed, PoolsKeepTheirHandles) {
  CUmemoryPool standard = nullptr;
  ASSERT_CU(cuDeviceGetDefaultMemPool(&standard, 0));
  CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool told = nullptr;
  ASSERT_CU(cuMemGetDefaultMemPool(&told, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
  EXPECT_EQ(told, standard);
  const CUmemoryPool pool = NewPool(CU_MEM_HANDLE_TYPE_NONE);
  ASSERT_CU(cuDeviceSetMemPool(0, pool));
  ASSERT_CU(cuDeviceGetMemPool(&told, 0));
  EXPECT_EQ(told, pool);
  ASSERT_CU(cuMemGetMemPool(&told, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
  EXPECT_EQ(told, pool);
  // By the handle that the driver told, what comes from the arena.
  CUdeviceptr at = 0;
  ASSERT_CU(cuMemAllocFromPoolAsync(&at, kMiB, told, stream_));
  cuuint64_t used = 0;
  ASSERT_CU(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  EXPECT_EQ(used, kMiB);
  EXPECT_EQ(Outside("pool"), 0u);
  ASSERT_CU(cuMemFreeAsync(at, stream_));
  ASSERT_CU(cuMemPoolDestroy(pool));
  ASSERT_CU(cuDeviceGetMemPool(&told, 0));
  EXPECT_EQ(told, standard);
}

TEST_F(Passed, OrdinaryPoolsCannotBeExported) {
  CUmemoryPool standard = nullptr;
  ASSERT_CU(cuDeviceGetDefaultMemPool(&standard, 0));
  const CUmemoryPool ordinary = NewPool(CU_MEM_HANDLE_TYPE_NONE);
  for (const CUmemoryPool pool : {standard, ordinary}) {
    int fd = -1;
    EXPECT_EQ(cuMemPoolExportToShareableHandle(&fd, pool, kDescriptor, 0),
              CUDA_ERROR_INVALID_VALUE);
    CUdeviceptr at = 0;
    ASSERT_CU(cuMemAllocFromPoolAsync(&at, kMiB, pool, stream_));
    CUmemPoolPtrExportData data{};
    EXPECT_EQ(cuMemPoolExportPointer(&data, at), CUDA_ERROR_INVALID_VALUE);
    ASSERT_CU(cuMemFreeAsync(at, stream_));
  }
  ASSERT_CU(cuMemPoolDestroy(ordinary));
  const CUmemoryPool exportable = NewPool(kDescriptor);
  int fd = -1;
  ASSERT_CU(cuMemPoolExportToShareableHandle(&fd, exportable, kDescriptor, 0));
  CUmemoryPool imported = nullptr;
  ASSERT_CU(cuMemPoolImportFromShareableHandle(
      &imported, reinterpret_cast<void*>(static_cast<uintptr_t>(fd)), kDescriptor, 0));
  close(fd);
  CUdeviceptr at = 0;
  EXPECT_NE(cuMemAllocFromPoolAsync(&at, kMiB, imported, stream_), CUDA_SUCCESS);
  EXPECT_EQ(Outside("pool"), 0u);
  ASSERT_CU(cuMemPoolDestroy(imported));
  ASSERT_CU(cuMemPoolDestroy(exportable));
}

TEST_F(Passed, TheArenaIsNeverPrefetched) {
  const CUdeviceptr block = Alloc(kMiB);
  const CUmemLocation host{CU_MEM_LOCATION_TYPE_HOST, 0};
  const CUresult answers[] = {
      cuMemPrefetchAsync(block, kMiB, CU_DEVICE_CPU, stream_),
      cuMemPrefetchAsync_ptsz(block, kMiB, CU_DEVICE_CPU, stream_),
      cuMemPrefetchAsync_v2(block, kMiB, host, 0, stream_),
      cuMemPrefetchAsync_v2_ptsz(block, kMiB, host, 0, stream_),
      cuMemAdvise(block, kMiB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU),
      cuMemAdvise_v2(block, kMiB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host)};
  for (const CUresult answer : answers) EXPECT_EQ(answer, CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuMemFree_v2(block));
}

TEST_F(Passed, QueriesSeeTheProgramsWorkAlone) {
  SharedWord word;
  Block(stream_, word);
  WorkThatIsMarked();
  CUevent event = nullptr;
  ASSERT_CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  ASSERT_CU(cuEventRecord(event, stream_));
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  word.Store(1);
  // With the program's work the marks are over: no call of the library is needed for that.
  ExpectSoon([&] { return cuStreamQuery(stream_); }, CUDA_SUCCESS);
  EXPECT_CU(cuEventQuery(event));
  // Another stream that waits for the event comes behind the work, and frees what it used.
  CUstream other = nullptr;
  ASSERT_CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  CUdeviceptr at = 0;
  ASSERT_CU(cuMemAllocAsync(&at, 16 * kMiB, stream_));
  ASSERT_CU(Fill(at, 0x5eed, 1024, stream_));
  ASSERT_CU(cuEventRecordWithFlags(event, stream_, 0));
  ASSERT_CU(cuStreamWaitEvent(other, event, 0));
  uint32_t seen = 0;
  ASSERT_CU(cuMemcpyDtoHAsync_v2(&seen, at, sizeof seen, other));
  ASSERT_CU(cuMemFreeAsync(at, other));
  ASSERT_CU(cuMemAllocAsync(&at, 16 * kMiB, stream_)) << "the freed block, behind its mark";
  ASSERT_CU(cuMemFreeAsync(at, stream_));
  ASSERT_CU(cuStreamSynchronize(other));
  EXPECT_EQ(seen, 0x5eedu);
  ASSERT_CU(cuStreamDestroy_v2(other));
  ASSERT_CU(cuEventDestroy_v2(event));
}

TEST_F(Passed, CapturesHoldTheProgramsWorkAlone) {
  WorkThatIsMarked();
  ASSERT_CU(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
  constexpr size_t kLaunches = 40;
  for (size_t i = 0; i < kLaunches; ++i) ASSERT_CU(Launch("nothing", {}, stream_));
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* tips = nullptr;
  size_t count = 0;
  ASSERT_CU(cuStreamGetCaptureInfo_v2(stream_, &status, &id, &graph, &tips, &count));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(count, 1u);
  ASSERT_CU(cuStreamEndCapture(stream_, &graph));
  ASSERT_CU(cuGraphGetNodes(graph, nullptr, &count));
  EXPECT_EQ(count, kLaunches);
  ASSERT_CU(cuStreamIsCapturing(stream_, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
  ASSERT_CU(cuGraphDestroy(graph));
}

/// A session that begins while a green context is current.
class PassedGreen : public Hook {};

TEST_F(PassedGreen, LeavesWhatWasFirstAskedForInIt) {
  CUdevResource sms{};
  CUdevResourceDesc desc = nullptr;
  CUgreenCtx green = nullptr;
  CUcontext view = nullptr;
  ASSERT_CU(cuDeviceGetDevResource(0, &sms, CU_DEV_RESOURCE_TYPE_SM));
  ASSERT_CU(cuDevResourceGenerateDesc(&desc, &sms, 1));
  ASSERT_CU(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  ASSERT_CU(cuCtxFromGreenCtx(&view, green));
  ASSERT_CU(cuCtxSetCurrent(view));
  const CUdeviceptr first = Alloc(8 * kMiB);
  CUstream stream = nullptr;
  ASSERT_CU(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
  ASSERT_CU(cuMemsetD32Async(first, 0x5eed, 2 * kMiB, stream));
  ASSERT_CU(cuStreamSynchronize(stream));
  ASSERT_CU(cuCtxSetCurrent(context_));
  ASSERT_CU(cuStreamDestroy_v2(stream));
  ASSERT_CU(cuGreenCtxDestroy(green));
  EXPECT_EQ(Outside("context"), kContext) << "the same session";
  EXPECT_EQ(Read32(first), 0x5eedu);
  // All of it comes back: the session waits for a context that is there.
  ASSERT_CU(cuMemFree_v2(first));
  const CUdeviceptr whole = Alloc(kLimit - kUnit);
  ASSERT_CU(cuMemFree_v2(whole));
}

}  // namespace
}  // namespace sluice::hooks
