// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "tests/contract/fixture.h"
#include "tests/contract/lent_memory.h"

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
  EXPECT_EQ(cuIpcOpenEventHandle(&event, handle), CUDA_ERROR_MAP_FAILED);  // of nothing
  ASSERT_CU(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
  ASSERT_CU(cuIpcGetEventHandle(&handle, event));
  EXPECT_CU(cuEventQuery(event));  // never recorded
  ASSERT_CU(cuEventDestroy_v2(event));
  EXPECT_NE(cuIpcOpenEventHandle(&event, handle), CUDA_SUCCESS);  // of one that is gone
}

/// The event in the passed file, in a context of this process.
bool OpenPassedEvent(CUevent* event, CUstream* stream) {
  CUipcEventHandle handle{};
  return pread(kPassedFd, &handle, sizeof handle, 0) == static_cast<ssize_t>(sizeof handle) &&
         StartContext() && cuStreamCreate(stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
         cuIpcOpenEventHandle(event, handle) == CUDA_SUCCESS;
}

/// Records the event behind a gate, which opens at the next word from the test.
int RecordEvent() {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  if (!OpenPassedEvent(&event, &stream)) return 1;
  SharedWord gate;
  WriteToTest(static_cast<uint64_t>(cuEventQuery(event)));
  ReadFromTest();
  if (cuStreamWaitValue64_v2(stream, gate.device(), 1, CU_STREAM_WAIT_VALUE_GEQ) != CUDA_SUCCESS ||
      cuEventRecord(event, stream) != CUDA_SUCCESS) {
    return 1;
  }
  WriteToTest(1);
  ReadFromTest();
  gate.Store(1);
  WriteToTest(cuStreamSynchronize(stream));
  return 0;
}
const bool kRecordEvent = AddRole("record_event", RecordEvent);

/// Lets a stream wait for the event, and says how that stream is doing whenever it is asked, after
/// at most as many milliseconds as it is told. A process of its own: it may wait for ever.
int WaitForEvent() {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  if (!OpenPassedEvent(&event, &stream)) return 1;
  WriteToTest(cuStreamWaitEvent(stream, event, 0));
  for (;;) {
    const uint64_t until = NowNs() + ReadFromTest() * 1'000'000;
    while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY && NowNs() < until) poll(nullptr, 0, 1);
    WriteToTest(cuStreamQuery(stream));
  }
}
const bool kWaitForEvent = AddRole("wait_for_event", WaitForEvent);

class EventsOfProcesses : public EventSharing {
 protected:
  void SetUp() override {
    EventSharing::SetUp();
    CUipcEventHandle handle{};
    ASSERT_CU(cuEventCreate(&event_, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    ASSERT_CU(cuIpcGetEventHandle(&handle, event_));
    fd_ = memfd_create("handle", MFD_CLOEXEC);
    ASSERT_EQ(write(fd_, &handle, sizeof handle), static_cast<ssize_t>(sizeof handle));
  }
  void TearDown() override {
    close(fd_);
    EventSharing::TearDown();
  }
  /// What a process whose stream waits says, after at most `ms`.
  static CUresult Ask(OtherProcess& waiter, uint64_t ms) {
    waiter.Write(ms);
    return static_cast<CUresult>(waiter.Read());
  }
  CUevent event_ = nullptr;
  int fd_ = -1;
};

TEST_F(EventsOfProcesses, ARecordIsSeenByTheOther) {
  SharedWord gate;
  ASSERT_CU(cuStreamWaitValue64_v2(stream_, gate.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(cuEventRecord(event_, stream_));
  OtherProcess other("record_event", fd_);
  EXPECT_EQ(other.Read(), static_cast<uint64_t>(CUDA_ERROR_NOT_READY));
  gate.Store(1);
  ASSERT_CU(cuEventSynchronize(event_));
}

TEST_F(EventsOfProcesses, AStreamWaitsForAnotherProcess) {
  OtherProcess other("record_event", fd_);
  EXPECT_EQ(other.Read(), static_cast<uint64_t>(CUDA_SUCCESS));  // never recorded
  other.Write(1);
  ASSERT_EQ(other.Read(), 1u);
  EXPECT_EQ(cuEventQuery(event_), CUDA_ERROR_NOT_READY);
  OtherProcess waiter("wait_for_event", fd_);
  ASSERT_EQ(waiter.Read(), static_cast<uint64_t>(CUDA_SUCCESS));
  EXPECT_EQ(Ask(waiter, 100), CUDA_ERROR_NOT_READY);
  other.Write(1);
  EXPECT_EQ(other.Read(), static_cast<uint64_t>(CUDA_SUCCESS));
  EXPECT_EQ(Ask(waiter, 5000), CUDA_SUCCESS);
  EXPECT_CU(cuEventQuery(event_));
}

TEST_F(EventsOfProcesses, WhoeverWaitsForAProcessThatIsKilled) {
  OtherProcess other("record_event", fd_);
  other.Read();
  other.Write(1);
  ASSERT_EQ(other.Read(), 1u);
  OtherProcess waiter("wait_for_event", fd_);
  ASSERT_EQ(waiter.Read(), static_cast<uint64_t>(CUDA_SUCCESS));
  EXPECT_EQ(Ask(waiter, 100), CUDA_ERROR_NOT_READY);
  other.Kill();
  other.Join();
  AnswerIf("waits_for_ever_for_a_killed_process", Ask(waiter, 5000) == CUDA_ERROR_NOT_READY);
  AnswerIf("its_event_counts_as_reached", cuEventQuery(event_) == CUDA_SUCCESS);
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

TEST_F(EventSharing, CallbacksHearOfTheStream) {
  Called good;
  ASSERT_CU(cuStreamAddCallback(stream_, Note, &good, 0));
  ASSERT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(good.calls.load(), 1);
  EXPECT_EQ(good.status, CUDA_SUCCESS);
  EXPECT_EQ(good.stream, stream_);
  EXPECT_EQ(cuStreamAddCallback(stream_, Note, &good, 1), CUDA_ERROR_INVALID_VALUE);
}

/// A kernel fails in one of two contexts. Tells how often and with what a callback behind it was
/// called, how often a host function, and whether memory of the other context can be used still.
int FailInOneContext() {
  CUcontext healthy = nullptr;
  CUcontext other = nullptr;
  CUmodule module = nullptr;
  CUfunction trap = nullptr;
  CUdeviceptr memory = 0;
  static Called callback;
  static Called function;
  if (!StartContext() || cuCtxGetCurrent(&healthy) != CUDA_SUCCESS ||
      cuMemAlloc_v2(&memory, 4096) != CUDA_SUCCESS ||
      cuCtxCreate_v2(&other, 0, 0) != CUDA_SUCCESS ||
      cuModuleLoadData(&module, KernelImage().c_str()) != CUDA_SUCCESS ||
      cuModuleGetFunction(&trap, module, "trap") != CUDA_SUCCESS ||
      cuFuncLoad(trap) != CUDA_SUCCESS) {
    return 1;
  }
  auto* gate = new SharedWord;  // never freed: the driver may be past it
  if (cuStreamWaitValue64_v2(nullptr, gate->device(), 1, CU_STREAM_WAIT_VALUE_GEQ) != 0 ||
      cuLaunchKernel(trap, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) != CUDA_SUCCESS ||
      cuLaunchHostFunc(
          nullptr, [](void* p) { Note(nullptr, CUDA_SUCCESS, p); }, &function) != CUDA_SUCCESS ||
      cuStreamAddCallback(nullptr, Note, &callback, 0) != CUDA_SUCCESS) {
    return 1;
  }
  gate->Store(1);
  // What the driver calls comes on a thread of its own, after the stream is known to be broken.
  static_cast<void>(cuStreamSynchronize(nullptr));
  const uint64_t until = NowNs() + 2'000'000'000;
  while (callback.calls.load() == 0 && NowNs() < until) poll(nullptr, 0, 1);
  WriteToTest(static_cast<uint64_t>(callback.calls.load()));
  WriteToTest(callback.status);
  WriteToTest(static_cast<uint64_t>(function.calls.load()));
  WriteToTest(cuCtxDestroy_v2(other));
  cuCtxSetCurrent(healthy);
  WriteToTest(cuMemsetD8_v2(memory, 0, 4096) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS);
  ReadFromTest();
  return 0;
}
const bool kFail = AddRole("fail_in_one_context", FailInOneContext);

TEST_F(EventSharing, CallbacksHearOfFailures) {
  OtherProcess other("fail_in_one_context");
  EXPECT_EQ(other.Read(), 1u);
  EXPECT_EQ(other.Read(), static_cast<uint64_t>(CUDA_ERROR_LAUNCH_FAILED));
  EXPECT_EQ(other.Read(), 0u) << "host functions are not called after a failure";
  AnswerIf("a_context_that_failed_can_be_destroyed", other.Read() == CUDA_SUCCESS);
  AnswerIf("a_failure_spares_the_other_contexts_of_its_process", other.Read() == 1);
  // It spares those of other processes in any case.
  const CUdeviceptr memory = Alloc(4096);
  EXPECT_CU(Fill(memory, 4, 1));
  EXPECT_EQ(Read32(memory), 4u);
}

}  // namespace
}  // namespace sluice::contract
