// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "tests/contract/fixture.h"

namespace sluice::contract {
namespace {

/// Events of other contexts and of other processes.
class EventSharing : public ContextTest {
 protected:
  void SetUp() override {
    ContextTest::SetUp();
    ASSERT_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  }
  CUstream stream_ = nullptr;
};

TEST_F(EventSharing, AStreamWaitsForAnotherContext) {
  SharedWord gate;
  CUcontext other = nullptr;
  CUstream theirs = nullptr;
  CUevent event = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&other, 0, 0));
  ASSERT_CU(cuStreamCreate(&theirs, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  ASSERT_CU(cuStreamWaitValue64_v2(theirs, gate.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(cuEventRecord(event, theirs));
  ASSERT_CU(cuCtxSetCurrent(context_));
  ASSERT_CU(cuStreamWaitEvent(stream_, event, 0));
  EXPECT_EQ(cuEventRecord(event, stream_), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
  gate.Store(1);
  ASSERT_CU(cuStreamSynchronize(stream_));
  EXPECT_CU(cuEventQuery(event));
  ASSERT_CU(cuCtxDestroy_v2(other));
}

TEST_F(EventSharing, SharedEventsAreMadeWithoutTiming) {
  CUevent event = nullptr;
  CUipcEventHandle handle{};
  EXPECT_EQ(cuEventCreate(&event, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  EXPECT_EQ(cuIpcGetEventHandle(&handle, event), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuIpcOpenEventHandle(&event, handle), CUDA_ERROR_INVALID_HANDLE);
  ASSERT_CU(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
  ASSERT_CU(cuIpcGetEventHandle(&handle, event));
  EXPECT_CU(cuEventQuery(event));  // never recorded
  ASSERT_CU(cuEventDestroy_v2(event));
  EXPECT_EQ(cuIpcOpenEventHandle(&event, handle), CUDA_ERROR_INVALID_HANDLE);
}

/// Opens the event in the passed file; then, on each word from the test: 1 records it behind a gate
/// that the next word opens, 2 records it behind a gate that nobody opens.
int ShareEvent() {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUipcEventHandle handle{};
  if (pread(kPassedFd, &handle, sizeof handle, 0) != static_cast<ssize_t>(sizeof handle) ||
      cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) {
    return 1;
  }
  cuCtxSetCurrent(context);
  SharedWord gate;
  if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
      cuIpcOpenEventHandle(&event, handle) != CUDA_SUCCESS) {
    return 2;
  }
  WriteToTest(static_cast<uint64_t>(cuEventQuery(event)));
  for (uint64_t value = 1;; ++value) {
    const uint64_t order = ReadFromTest();
    if (order == 0) break;
    if (cuStreamWaitValue64_v2(stream, gate.device(), value, CU_STREAM_WAIT_VALUE_GEQ) !=
            CUDA_SUCCESS ||
        cuEventRecord(event, stream) != CUDA_SUCCESS) {
      return 3;
    }
    WriteToTest(value);
    if (order == 1) {
      ReadFromTest();
      gate.Store(value);
    }
  }
  return 0;
}
const bool kShareEvent = AddRole("share_event", ShareEvent);

TEST_F(EventSharing, ProcessesWaitForEachOther) {
  CUevent event = nullptr;
  CUipcEventHandle handle{};
  ASSERT_CU(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
  ASSERT_CU(cuIpcGetEventHandle(&handle, event));
  const int fd = memfd_create("handle", MFD_CLOEXEC);
  ASSERT_EQ(write(fd, &handle, sizeof handle), static_cast<ssize_t>(sizeof handle));
  SharedWord gate;
  ASSERT_CU(cuStreamWaitValue64_v2(stream_, gate.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(cuEventRecord(event, stream_));
  OtherProcess other("share_event", fd);
  EXPECT_EQ(other.Read(), static_cast<uint64_t>(CUDA_ERROR_NOT_READY));  // my record, seen there
  gate.Store(1);
  ASSERT_CU(cuEventSynchronize(event));
  // Now the other way round.
  other.Write(1);
  EXPECT_EQ(other.Read(), 1u);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  ASSERT_CU(cuStreamWaitEvent(stream_, event, 0));
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
  other.Write(0);
  ASSERT_CU(cuStreamSynchronize(stream_));
  // Whoever dies with work under way holds up nobody.
  other.Write(2);
  EXPECT_EQ(other.Read(), 2u);
  ASSERT_CU(cuStreamWaitEvent(stream_, event, 0));
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
  other.Kill();
  ASSERT_CU(cuStreamSynchronize(stream_));
  close(fd);
}

TEST_F(EventSharing, StreamsTellWhatTheyAre) {
  unsigned flags = 9;
  CUcontext context = nullptr;
  CUdevice device = 9;
  ASSERT_CU(cuStreamGetFlags(stream_, &flags));
  EXPECT_EQ(flags, static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
  ASSERT_CU(cuStreamGetFlags(nullptr, &flags));
  EXPECT_EQ(flags, static_cast<unsigned>(CU_STREAM_DEFAULT));
  ASSERT_CU(cuStreamGetCtx(stream_, &context));
  EXPECT_EQ(context, context_);
  ASSERT_CU(cuStreamGetDevice(stream_, &device));
  EXPECT_EQ(device, 0);
  EXPECT_EQ(cuStreamGetFlags(stream_, nullptr), CUDA_ERROR_INVALID_VALUE);
}

struct Called {
  std::atomic<int> calls{0};
  CUresult status = CUDA_SUCCESS;
  CUstream stream = nullptr;
};
void Note(CUstream stream, CUresult status, void* data) {
  auto* called = static_cast<Called*>(data);
  called->stream = stream;
  called->status = status;
  called->calls.fetch_add(1);
}

TEST_F(EventSharing, CallbacksHearOfTheStreamAndOfFailures) {
  Called good;
  ASSERT_CU(cuStreamAddCallback(stream_, Note, &good, 0));
  ASSERT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(good.calls.load(), 1);
  EXPECT_EQ(good.status, CUDA_SUCCESS);
  EXPECT_EQ(good.stream, stream_);
  EXPECT_EQ(cuStreamAddCallback(stream_, Note, &good, 1), CUDA_ERROR_INVALID_VALUE);
  CUcontext other = nullptr;
  CUmodule module = nullptr;
  CUfunction trap = nullptr;
  SharedWord gate;
  Called bad;
  ASSERT_CU(cuCtxCreate_v2(&other, 0, 0));
  ASSERT_CU(cuModuleLoadData(&module, KernelImage().c_str()));
  ASSERT_CU(cuModuleGetFunction(&trap, module, "trap"));
  ASSERT_CU(cuStreamWaitValue64_v2(nullptr, gate.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(cuLaunchKernel(trap, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  ASSERT_CU(cuLaunchHostFunc(
      nullptr, [](void* p) { Note(nullptr, CUDA_SUCCESS, p); }, &good));
  ASSERT_CU(cuStreamAddCallback(nullptr, Note, &bad, 0));
  gate.Store(1);
  EXPECT_TRUE(Eventually([&] { return bad.calls.load() == 1; }));
  EXPECT_EQ(bad.status, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(good.calls.load(), 1);  // host functions are not called after a failure
  EXPECT_CU(cuCtxDestroy_v2(other));
}

}  // namespace
}  // namespace sluice::contract
