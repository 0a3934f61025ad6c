// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// What a second thread may do to memory while the first one captures, which is what a lender's
// thread inside a job does.
#include <unistd.h>

#include <functional>
#include <thread>

#include "tests/contract/graph_fixture.h"
#include "tests/contract/lent_memory.h"

namespace sluice::contract {
namespace {

struct Mode {
  CUstreamCaptureMode mode;
  const char* name;
};

class CaptureThreads : public GraphTest, public ::testing::WithParamInterface<Mode> {
 protected:
  /// Captures a launch while another thread, which never changed its own mode, calls something.
  void Try(const std::string& what, const std::function<CUresult()>& call) {
    uint32_t value = 1;
    ASSERT_CU(cuStreamBeginCapture_v2(stream_, GetParam().mode));
    ASSERT_CU(Launch("append", {&log_, &value}, stream_));
    CUresult result = CUDA_SUCCESS;
    std::thread([&] {
      cuCtxSetCurrent(context_);
      result = call();
    }).join();
    CUgraph graph = nullptr;
    const bool survived = cuStreamEndCapture(stream_, &graph) == CUDA_SUCCESS;
    EXPECT_EQ(graph != nullptr, survived);
    if (graph != nullptr) {
      EXPECT_CU(cuGraphDestroy(graph));
    }
    Answer(std::string(GetParam().name) + "." + what,
           NameOf(result) + (survived ? ", the capture goes on" : ", the capture is lost"));
  }
};

TEST_P(CaptureThreads, MemoryCallsOfASecondThread) {
  const size_t bytes = Granularity();
  const CUmemAccessDesc access = ReadWrite();
  const CUmemAllocationProp prop = DeviceMemory();
  CUmemGenericAllocationHandle handle = CreateMemory(bytes);
  CUdeviceptr range = 0;
  ASSERT_CU(cuMemAddressReserve(&range, bytes, 0, 0, 0));
  CUmemGenericAllocationHandle extra = 0;
  Try("cuMemCreate", [&] { return cuMemCreate(&extra, bytes, &prop, 0); });
  if (extra == 0) {
    ASSERT_CU(cuMemCreate(&extra, bytes, &prop, 0));
  }
  const int fd = ExportMemory(extra);
  CUmemGenericAllocationHandle imported = 0;
  Try("cuMemImportFromShareableHandle", [&] {
    return cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(intptr_t{fd}),
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  });
  // Each step is done here when it was refused there, so that the next one means something.
  CUresult result = CUDA_SUCCESS;
  const auto step = [&](const std::string& what, const std::function<CUresult()>& call) {
    Try(what, [&] { return result = call(); });
    if (result != CUDA_SUCCESS) {
      ASSERT_CU(call()) << what;
    }
  };
  step("cuMemMap", [&] { return cuMemMap(range, bytes, 0, handle, 0); });
  step("cuMemSetAccess", [&] { return cuMemSetAccess(range, bytes, &access, 1); });
  step("cuMemUnmap", [&] { return cuMemUnmap(range, bytes); });
  step("cuMemRelease", [&] { return cuMemRelease(handle); });
  CUdeviceptr plain = 0;
  step("cuMemAlloc", [&] { return cuMemAlloc_v2(&plain, 4096); });
  step("cuMemFree", [&] { return cuMemFree_v2(plain); });
  SharedFile file;
  step("cuMemHostRegister", [&] { return cuMemHostRegister_v2(file.words, 4096, 0); });
  ASSERT_CU(cuMemHostUnregister(file.words));
  close(fd);
  if (imported != 0) {
    ASSERT_CU(cuMemRelease(imported));
  }
  ASSERT_CU(cuMemRelease(extra));
  ASSERT_CU(cuMemAddressFree(range, bytes));
}

INSTANTIATE_TEST_SUITE_P(Modes, CaptureThreads,
                         ::testing::Values(Mode{CU_STREAM_CAPTURE_MODE_GLOBAL, "global"},
                                           Mode{CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                                "thread_local"},
                                           Mode{CU_STREAM_CAPTURE_MODE_RELAXED, "relaxed"}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace sluice::contract
