// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <utility>

#include "tests/unit/intercept/client_fixture.h"

namespace sluice::test {
namespace {

using protocol::FrameType;

class ClientSession : public ClientTest {
 protected:
  /// The first allocation fails and says exactly one line with `part` in it.
  void ExpectRefusal(const std::string& part) {
    testing::internal::CaptureStderr();
    CUdeviceptr at = 0;
    EXPECT_EQ(client->AllocAsync(&at, 512, FakeDriver::Stream(1)), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(client->AllocAsync(&at, 512, FakeDriver::Stream(1)), CUDA_ERROR_OUT_OF_MEMORY);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(Contains(said, part)) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    EXPECT_EQ(driver.mapped, 0);
    EXPECT_EQ(driver.reserved_bytes, 0u);
  }
};

int OpenFiles() {
  int count = 0;
  for (int fd = 0; fd < 1024; ++fd) count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

// The next session's page of marks is where the last one's was. A driver that still has that one
// registered would let streams write there.
TEST_F(ClientSession, ARegistrationThatOutlivedItsSessionGoesBeforeTheNext) {
  static bool registered;
  static int times;
  static bool refuse;
  registered = refuse = false;
  times = 0;
  driver.table().cuMemHostRegister_v2 = [](void*, size_t, unsigned) {
    if (std::exchange(registered, true)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    ++times;
    return CUDA_SUCCESS;
  };
  driver.table().cuMemHostUnregister = [](void*) {
    if (refuse) return CUDA_ERROR_INVALID_CONTEXT;
    registered = false;
    return CUDA_SUCCESS;
  };
  AllocAsync(512);
  refuse = true;
  EXPECT_EQ(client->ContextDestroy(driver.context), CUDA_SUCCESS);
  EXPECT_TRUE(registered);
  ExpectRefusal("does not register");
  refuse = false;
  Start(FakeDaemon::Options());
  AllocAsync(512);
  refuse = true;
  EXPECT_EQ(client->ContextDestroy(driver.context), CUDA_SUCCESS);
  refuse = false;
  AllocAsync(512);
  EXPECT_EQ(times, 3);
}

TEST_F(ClientSession, WithoutASocketThereIsNoMemory) {
  client->Configure(&driver.table(), "", {});
  ExpectRefusal("SLUICE_SOCKET names no socket");
}

TEST_F(ClientSession, NothingIsSaidBeforeTheFirstAllocation) {
  Launch("early");
  EXPECT_EQ(client->Free(0x1234), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(daemon->Count(FrameType::kHello), 0u);
  AllocAsync(1);
  const auto hello = daemon->Wait(FrameType::kHello, 1);
  ASSERT_EQ(hello[0].size(), sizeof(protocol::Hello));
  EXPECT_EQ(reinterpret_cast<const protocol::Hello*>(hello[0].data())->device_uuid[3], 7);
}

// Whoever looks may do so in a context of its own, which ends before the program's work begins.
TEST_F(ClientSession, AReportIsTheJobsAndOpensNoSession) {
  Start({.limit_units = 16});
  daemon->told_used = 3 * kUnit;
  size_t free_bytes = 0;
  size_t total = 0;
  EXPECT_EQ(client->MemGetInfo(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, 16 * kUnit);
  EXPECT_EQ(free_bytes, 13 * kUnit);
  total = 0;
  EXPECT_EQ(client->DeviceTotalMem(&total, 0), CUDA_SUCCESS);
  EXPECT_EQ(total, 16 * kUnit);
  EXPECT_FALSE(client->has_session());
  EXPECT_EQ(daemon->Count(FrameType::kHello), 0u);
  EXPECT_EQ(client->MemGetInfo(nullptr, &total), CUDA_ERROR_INVALID_VALUE);
  driver.context = nullptr;
  EXPECT_EQ(client->MemGetInfo(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, 22u) << "without a context the driver answers";
  driver.context = reinterpret_cast<CUcontext>(0xc0);
}

TEST_F(ClientSession, AReportWithoutADaemonIsTheDriversAndCostsNothing) {
  client->Configure(&driver.table(), "/nonexistent/sluice.sock", {});
  size_t free_bytes = 0;
  size_t total = 0;
  testing::internal::CaptureStderr();
  EXPECT_EQ(client->MemGetInfo(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, 22u);
  EXPECT_EQ(client->DeviceTotalMem(&total, 0), CUDA_SUCCESS);
  EXPECT_EQ(total, 33u);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  client->Configure(&driver.table(), daemon->path().c_str(), {});
  AllocAsync(1);
}

// It may be looked at, and asked for memory, before the job's own is.
TEST_F(ClientSession, AGpuThatIsNotTheDaemonsIsNoFailureOfTheSession) {
  driver.table().cuDeviceGetCount = [](int* count) {
    *count = 2;
    return CUDA_SUCCESS;
  };
  daemon->on_hello = [this] { daemon->Close("another GPU"); };
  driver.device = 1;
  size_t free_bytes = 0;
  size_t total = 0;
  testing::internal::CaptureStderr();
  EXPECT_EQ(client->MemGetInfo(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, 22u);
  EXPECT_EQ(client->DeviceTotalMem(&total, 1), CUDA_SUCCESS);
  EXPECT_EQ(total, 33u);
  CUdeviceptr at = 0;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(client->AllocAsync(&at, 512, FakeDriver::Stream(1)), CUDA_ERROR_NOT_SUPPORTED);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(Contains(said, "device 1")) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_EQ(daemon->Count(FrameType::kHello), 0u);
  daemon->on_hello = nullptr;
  driver.device = 0;
  AllocAsync(512);
  driver.device = 1;
  EXPECT_EQ(client->MemGetInfo(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, 22u) << "also beside a session";
  driver.device = 0;
}

TEST_F(ClientSession, AnAbsentDaemonIsNeverAnUnlimitedGrant) {
  client->Configure(&driver.table(), "/nonexistent/sluice.sock", {});
  ExpectRefusal("there is no such socket (/nonexistent/sluice.sock)");
}

TEST_F(ClientSession, ARefusalGivesTheDaemonsReason) {
  daemon->on_hello = [this] { daemon->Close("a second process of the same job"); };
  ExpectRefusal("a second process of the same job");
}

TEST_F(ClientSession, ADaemonThatHangsUpInTheHandshakeIsAFailure) {
  daemon->on_hello = [this] { daemon->HangUp(); };
  ExpectRefusal("it is gone");
}

TEST_F(ClientSession, GarbageInTheHandshakeIsAFailure) {
  daemon->on_hello = [this] { daemon->SendRaw("garbage", 7); };
  ExpectRefusal("shorter than its header");
}

TEST_F(ClientSession, AnImpossiblePoolIsAFailure) {
  Start({.unit_bytes = 3 * 4096});
  ExpectRefusal("impossible shape");
}

TEST_F(ClientSession, FailuresOfTheDriverLeaveNothingBehind) {
  const int before = OpenFiles();
  driver.import_result = CUDA_ERROR_INVALID_VALUE;
  ExpectRefusal("does not import the pool's memory");
  daemon.reset();
  driver.import_result = CUDA_SUCCESS;
  driver.register_result = CUDA_ERROR_INVALID_VALUE;
  Start({});
  ExpectRefusal("does not register the page");
  daemon.reset();
  client.reset();
  EXPECT_LE(OpenFiles(), before);
}

TEST_F(ClientSession, TheWholePoolIsMappedOnceAndHandlesAreClosed) {
  Start({.handles = 5, .units_per_handle = 2});
  AllocAsync(1);
  EXPECT_EQ(driver.mapped, 5);
  EXPECT_FALSE(driver.unrelaxed_call);
  const int before = OpenFiles();
  AllocAsync(kUnit);
  EXPECT_EQ(OpenFiles(), before);
}

TEST_F(ClientSession, NoticesArePrintedWhileWaiting) {
  daemon->on_request = [this](const protocol::Header& request) {
    daemon->Notice("waiting for 2 MiB: job 7 holds 30 MiB\x1b[31m");
    daemon->AnswerAsUsual(request);
  };
  testing::internal::CaptureStderr();
  AllocAsync(1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "sluice: waiting for 2 MiB: job 7 holds 30 MiB?[31m\n");
}

TEST_F(ClientSession, GrantsOfSeveralFramesAreAppliedTogether) {
  daemon->on_request = [this](const protocol::Header& request) {
    daemon->Grant(request.seq, {{0, 2}}, protocol::kNoGate, false, 9);
    daemon->Grant(request.seq, {{2, 2}}, protocol::kNoGate, true, 9);
  };
  AllocAsync(4 * kUnit);
  EXPECT_EQ(daemon->Count(FrameType::kLease), 1u);
}

TEST_F(ClientSession, AnAnswerToAnotherRequestAndARepeatedEpochAreIgnored) {
  daemon->on_request = [this](const protocol::Header& request) {
    daemon->Grant(request.seq + 100, {{5, 1}}, protocol::kNoGate, true, 3);
    daemon->Deny(request.seq + 100, protocol::DenyCode::kOverLimit, "not for you");
    daemon->Grant(request.seq, {{0, 1}}, protocol::kNoGate, true, 4);
  };
  const CUdeviceptr a = AllocAsync(kUnit);
  daemon->on_request = [this](const protocol::Header& request) {
    daemon->Grant(request.seq, {{0, 1}}, protocol::kNoGate, true, 4);
    daemon->Grant(request.seq, {{1, 1}}, protocol::kNoGate, true, 5);
  };
  EXPECT_EQ(AllocAsync(kUnit), a + kUnit);
}

// A capture goes with its context or its stream, whether or not anybody ended it. Whoever believes
// in it still synchronises nothing any more.
// Asking a stream for its id breaks the capture that it takes part in.
TEST_F(ClientSession, ThatBeginsBesideACaptureAsksNoStreamOfItForItsId) {
  const CUstream captures = FakeDriver::Stream(2);
  ASSERT_EQ(client->CaptureBegin(captures, [] { return CUDA_SUCCESS; }), CUDA_SUCCESS);
  // So is the legacy stream, which waits for it.
  driver.capturing = {captures, CU_STREAM_LEGACY};
  EXPECT_NE(AllocAsync(512, FakeDriver::Stream(1)), 0u);
  EXPECT_EQ(driver.ids_asked, 1);
  driver.capturing.clear();
  EXPECT_EQ(client->CaptureEnd(captures, [] { return CUDA_SUCCESS; }), CUDA_SUCCESS);
  CUdeviceptr at = 0;
  EXPECT_EQ(client->AllocAsync(&at, 512, CU_STREAM_LEGACY), CUDA_SUCCESS);
  EXPECT_EQ(client->FreeAsync(at, CU_STREAM_LEGACY), CUDA_SUCCESS);
}

TEST_F(ClientSession, ACaptureEndsWithItsContext) {
  const CUstream s = FakeDriver::Stream(1);
  AllocAsync(512, s);
  EXPECT_EQ(client->CaptureBegin(s, [] { return CUDA_SUCCESS; }), CUDA_SUCCESS);
  EXPECT_EQ(client->open_captures(), 1u);
  EXPECT_EQ(client->ContextDestroy(driver.context), CUDA_SUCCESS);
  EXPECT_EQ(client->open_captures(), 0u);
  Start({});
  // Neither without a session, nor in a context that is not the session's.
  EXPECT_EQ(client->CaptureBegin(s, [] { return CUDA_SUCCESS; }), CUDA_SUCCESS);
  EXPECT_EQ(client->ContextDestroy(driver.context), CUDA_SUCCESS);
  EXPECT_EQ(client->open_captures(), 0u);
  CUdeviceptr at = 0;
  ASSERT_EQ(client->Alloc(&at, 512), CUDA_SUCCESS);
  driver.context = driver.stream_context[s] = reinterpret_cast<CUcontext>(0xc1);
  EXPECT_EQ(client->CaptureBegin(s, [] { return CUDA_SUCCESS; }), CUDA_SUCCESS);
  driver.context = reinterpret_cast<CUcontext>(0xc0);
  EXPECT_EQ(client->CaptureBegin(FakeDriver::Stream(2), [] { return CUDA_SUCCESS; }), CUDA_SUCCESS);
  EXPECT_EQ(client->ContextDestroy(reinterpret_cast<CUcontext>(0xc1)), CUDA_SUCCESS);
  EXPECT_EQ(client->open_captures(), 1u) << "the other one is in a context that is there";
  EXPECT_EQ(client->StreamDestroy(FakeDriver::Stream(3)), CUDA_SUCCESS);
  EXPECT_EQ(client->open_captures(), 1u) << "it was not begun on that stream";
  EXPECT_EQ(client->StreamDestroy(FakeDriver::Stream(2)), CUDA_SUCCESS);
  EXPECT_EQ(client->open_captures(), 0u);
  EXPECT_EQ(client->Free(at), CUDA_SUCCESS);
  EXPECT_EQ(driver.synchronised, 1);
}

TEST_F(ClientSession, ADaemonThatIsLostLeavesWhatIsHeld) {
  const CUdeviceptr a = AllocAsync(2 * kUnit);
  daemon->HangUp();
  testing::internal::CaptureStderr();
  CUdeviceptr b = 0;
  EXPECT_EQ(client->AllocAsync(&b, 4 * kUnit, FakeDriver::Stream(1)), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(client->AllocAsync(&b, 4 * kUnit, FakeDriver::Stream(1)), CUDA_ERROR_OUT_OF_MEMORY);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(
      said,
      "sluice: lost the daemon (it is gone): this job keeps its 128.0 KiB and gets no more\n");
  Launch("goes on");
  EXPECT_EQ(client->FreeAsync(a, FakeDriver::Stream(1)), CUDA_SUCCESS);
  EXPECT_EQ(AllocAsync(2 * kUnit), a);
}

TEST_F(ClientSession, TheDaemonsLastWordIsPassedOn) {
  AllocAsync(1);
  daemon->on_request = [this](const protocol::Header&) { daemon->Close("pool is shutting down"); };
  testing::internal::CaptureStderr();
  CUdeviceptr b = 0;
  EXPECT_EQ(client->AllocAsync(&b, 4 * kUnit, FakeDriver::Stream(1)), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(Contains(testing::internal::GetCapturedStderr(), "pool is shutting down"));
}

TEST_F(ClientSession, HostileGrantsEndTheSessionAndNothingElse) {
  const std::vector<std::vector<protocol::Extent>> bad = {
      {{31, 2}}, {{0xffffffff, 2}}, {{0, 0}}, {{5, 0xffffffff}}, {{3, 2}, {4, 2}}, {{0, 1}}};
  for (const auto& extents : bad) {
    Start({});
    const CUdeviceptr a = AllocAsync(1);  // unit 0
    daemon->on_request = [&](const protocol::Header& request) {
      daemon->Grant(request.seq, extents, protocol::kNoGate);
    };
    testing::internal::CaptureStderr();
    CUdeviceptr b = 0;
    EXPECT_EQ(client->AllocAsync(&b, 2 * kUnit, FakeDriver::Stream(1)), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_TRUE(
        Contains(testing::internal::GetCapturedStderr(), "lost the daemon (it granted what"));
    EXPECT_EQ(client->FreeAsync(a, FakeDriver::Stream(1)), CUDA_SUCCESS);
  }
}

TEST_F(ClientSession, AContextThatGoesGivesEverythingBack) {
  AllocAsync(3 * kUnit);
  const CUdeviceptr b = AllocAsync(kUnit);
  EXPECT_EQ(client->FreeAsync(b, FakeDriver::Stream(1)), CUDA_SUCCESS);
  EXPECT_EQ(client->ContextDestroy(driver.context), CUDA_SUCCESS);
  daemon->Wait(FrameType::kBye, 1);
  EXPECT_EQ(daemon->held_units(), 0u);
  EXPECT_EQ(driver.mapped, 0);
  EXPECT_EQ(driver.reserved_bytes, 0u);
  EXPECT_TRUE(daemon->LivenessHungUp());
}

// Another context may be at work on what the session has, which cannot go there: that one is on
// another GPU. What cannot be known to be idle stays
// with the process.
TEST_F(ClientSession, AContextThatGoesWaitsForTheOthers) {
  auto* second = reinterpret_cast<CUcontext>(0xe2);
  for (const bool idle : {true, false}) {
    Start({});
    AllocAsync(3 * kUnit);
    ASSERT_EQ(client->ContextCreate(&second, [] { return CUDA_SUCCESS; }), CUDA_SUCCESS);
    driver.device_of[second] = 1;
    driver.synchronised = 0;
    driver.synchronise_result = idle ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
    EXPECT_EQ(client->ContextDestroy(driver.context), CUDA_SUCCESS);
    daemon->Wait(FrameType::kBye, 1);
    EXPECT_EQ(driver.synchronised, 1);
    EXPECT_EQ(daemon->held_units(), idle ? 0u : 3u);
    driver.synchronise_result = CUDA_SUCCESS;
  }
}

// A program that exits does not wait for a thread of its own that waits for memory.
TEST_F(ClientSession, AContextThatGoesEndsTheWaitOfAnotherThread) {
  AllocAsync(kUnit);
  daemon->on_request = [](const protocol::Header&) {};  // never answers
  CUresult result = CUDA_SUCCESS;
  std::thread waiter([&] {
    CUdeviceptr at = 0;
    result = client->AllocAsync(&at, 4 * kUnit, FakeDriver::Stream(2));
  });
  daemon->Wait(FrameType::kLease, 2);
  EXPECT_EQ(client->ContextDestroy(driver.context), CUDA_SUCCESS);
  waiter.join();
  EXPECT_EQ(result, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(client->has_session());
}

TEST_F(ClientSession, AForkedChildPassesThroughButHoldsTheMemory) {
  const CUdeviceptr a = AllocAsync(kUnit);
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = fork();
  if (child == 0) {
    client->AfterForkInChild();
    const bool passive = !client->engaged() && !client->has_session();
    char byte = 0;
    close(go[1]);
    const bool told = read(go[0], &byte, 1) == 0;  // until the parent has looked
    _exit(passive && told ? 0 : 1);
  }
  close(go[0]);
  EXPECT_EQ(client->FreeAsync(a, FakeDriver::Stream(1)), CUDA_SUCCESS);
  EXPECT_EQ(AllocAsync(kUnit), a) << "the parent's session is untouched";
  EXPECT_EQ(client->ContextDestroy(driver.context), CUDA_SUCCESS);
  daemon->Wait(FrameType::kBye, 1);
  EXPECT_FALSE(daemon->LivenessHungUp()) << "the child still holds the pipe";
  close(go[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(daemon->LivenessHungUp());
}

TEST_F(ClientSession, AChildOfAProcessThatNeverUsedTheGpuMayHaveTheSession) {
  const pid_t child = fork();
  if (child == 0) {
    client->AfterForkInChild();
    _exit(client->engaged() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(ClientSession, SealedPagesCannotBeShrunk) {
  AllocAsync(1);
  daemon->WaitReady();
  EXPECT_NE(ftruncate(daemon->client_fd, 0), 0);
  EXPECT_NE(ftruncate(daemon->mark_fd, 0), 0);
  // Without the seal the same attack works: the test's daemon would be killed by SIGBUS.
  const int unsealed = memfd_create("unsealed", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(unsealed, 4096), 0);
  EXPECT_EQ(ftruncate(unsealed, 0), 0);
  close(unsealed);
}

TEST_F(ClientSession, ManyThreadsAllocateAndFree) {
  driver.immediate = true;
  Start({.unit_bytes = 256 * 1024, .handles = 8, .units_per_handle = 8});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      const CUstream stream = FakeDriver::Stream(t);
      for (int i = 0; i < 400; ++i) {
        const size_t bytes = 512u << (i % 10);
        const CUdeviceptr at = AllocAsync(bytes, stream);
        Launch("kernel", stream);
        if (i % 7 == 0) {
          EXPECT_EQ(client->Free(at), CUDA_SUCCESS);
        } else {
          EXPECT_EQ(client->FreeAsync(at, FakeDriver::Stream((t + i % 2) % 4)), CUDA_SUCCESS);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(daemon->client->live_bytes.load(), 0u);
}

}  // namespace
}  // namespace sluice::test
