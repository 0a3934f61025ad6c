// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// A client whose daemon dies, and another one that takes its place.
#include <cstring>
#include <future>
#include <thread>

#include "tests/unit/intercept/launch_fixture.h"

namespace sluice::test {
namespace {

using protocol::FrameType;
using protocol::ResumePart;

class ClientResume : public ClientTest {
 protected:
  void SetUp() override { Start({.socket_is_kept = true}); }

  /// Everything of one part, of all declarations so far.
  std::vector<protocol::Resume> Declared(ResumePart part) {
    std::vector<protocol::Resume> parts;
    for (const FakeDaemon::Bytes& frame : daemon->Wait(FrameType::kResume, 1)) {
      protocol::Resume resume{};
      memcpy(static_cast<void*>(&resume), frame.data(), frame.size());
      if (resume.part == part) parts.push_back(resume);
    }
    return parts;
  }
};

TEST_F(ClientResume, TellsWhatItHoldsAndAsksAgain) {
  const CUdeviceptr a = AllocAsync(2 * kUnit);
  daemon->HangUp();
  testing::internal::CaptureStderr();
  const CUdeviceptr b = AllocAsync(4 * kUnit);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(b, a + 2 * kUnit);
  const auto held = Declared(ResumePart::kHeld);
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(held[0].count, 1u);
  EXPECT_EQ(held[0].extent[0].offset, 0u);
  EXPECT_EQ(held[0].extent[0].length, 2u);
  EXPECT_EQ(held[0].epoch, 1u);
  EXPECT_EQ(Declared(ResumePart::kReleased).at(0).count, 0u);
  EXPECT_EQ(daemon->held_units(), 6u);
  EXPECT_EQ(daemon->Count(FrameType::kLease), 2u) << "the first, and one that was made again";
}

// A grant of which only a part came was never given.
TEST_F(ClientResume, APartOfAnAnswerCountsForNothing) {
  AllocAsync(kUnit);
  daemon->on_request = [this](const protocol::Header& request) {
    daemon->on_request = nullptr;
    daemon->Grant(request.seq, {{4, 4}}, protocol::kNoGate, false, 9);
    daemon->HangUp();
  };
  AllocAsync(4 * kUnit);
  const auto held = Declared(ResumePart::kHeld);
  ASSERT_EQ(held.size(), 1u);
  ASSERT_EQ(held[0].count, 1u);
  EXPECT_EQ(held[0].extent[0].length, 1u);
  EXPECT_EQ(daemon->held_units(), 5u);
}

TEST_F(ClientResume, NamesReleasesThatTheGpuHasNotPassed) {
  const CUdeviceptr a = AllocAsync(3 * kUnit);
  AllocAsync(kUnit);
  Launch("before");
  ASSERT_EQ(client->FreeAsync(a, FakeDriver::Stream(1)), CUDA_SUCCESS);
  for (uint32_t i = 0; i < kCalmFactor * kMarkLaunches; ++i) Launch("until it is marked");
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(driver.table().cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
  ASSERT_EQ(client->PoolTrimTo(pool, 0), CUDA_SUCCESS);
  const auto releases = daemon->Wait(FrameType::kRelease, 1);
  daemon->HangUp();
  AllocAsync(6 * kUnit);
  const auto released = Declared(ResumePart::kReleased);
  ASSERT_EQ(released.size(), 1u);
  ASSERT_EQ(released[0].count, 1u);
  EXPECT_EQ(released[0].extent[0].length, 3u);
  const auto fence = Declared(ResumePart::kFence);
  ASSERT_EQ(fence.size(), 1u);
  EXPECT_EQ(fence[0].count, 1u);
  EXPECT_EQ(fence[0].header.flags & protocol::kLastFrame, protocol::kLastFrame);
}

// It finds out by what it gives back, and not where it waits for an answer.
TEST_F(ClientResume, WhoWasSentAwayIsToldWhyWhateverItSaysNext) {
  const CUdeviceptr a = AllocAsync(3 * kUnit);
  Launch("before");
  daemon->Close("you said what cannot be");
  daemon->HangUp();
  ASSERT_EQ(client->FreeAsync(a, FakeDriver::Stream(1)), CUDA_SUCCESS);
  for (uint32_t i = 0; i < kCalmFactor * kMarkLaunches; ++i) Launch("until it is marked");
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(driver.table().cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
  testing::internal::CaptureStderr();
  ASSERT_EQ(client->PoolTrimTo(pool, 0), CUDA_SUCCESS);
  CUdeviceptr b = 0;
  EXPECT_EQ(client->AllocAsync(&b, 6 * kUnit, FakeDriver::Stream(1)), CUDA_ERROR_OUT_OF_MEMORY);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(Contains(said, "you said what cannot be")) << said;
  EXPECT_EQ(daemon->Count(FrameType::kResume), 0u);
}

// Nobody asks for memory; the next launch sees the word in the client's page.
TEST_F(ClientResume, ComesWhenItIsCalled) {
  AllocAsync(kUnit);
  daemon->HangUp();
  Launch("does not know");
  EXPECT_EQ(daemon->Count(FrameType::kResume), 0u);
  daemon->client->resume_wanted.store(1);
  Launch("is called");
  EXPECT_EQ(Declared(ResumePart::kHeld).size(), 1u);
  Launch("has been there");
  EXPECT_EQ(Declared(ResumePart::kHeld).size(), 1u);
}

TEST_F(ClientResume, ReadsTheNewDaemonsPage) {
  AllocAsync(kUnit);
  daemon->HangUp();
  AllocAsync(2 * kUnit);
  size_t free_bytes = 0;
  size_t total = 0;
  daemon->daemon->limit_units.store(7);
  ASSERT_EQ(client->MemGetInfo(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, 7 * kUnit);
}

TEST_F(ClientResume, GoesOnAgainAndAgain) {
  for (uint32_t i = 0; i < 5; ++i) {
    AllocAsync(kUnit);
    daemon->HangUp();
  }
  AllocAsync(kUnit);
  EXPECT_EQ(daemon->held_units(), 6u);
}

/// The context ends while no daemon is there: nothing is left, and the next daemon is told so
/// before anything else. Then this process is as good as a new one.
TEST_F(ClientResume, AContextThatEndsWithoutADaemonIsSaidToTheNextOne) {
  AllocAsync(2 * kUnit);
  daemon->HangUp();
  EXPECT_EQ(client->ContextDestroy(driver.context), CUDA_SUCCESS);
  AllocAsync(4 * kUnit);
  for (const ResumePart part : {ResumePart::kHeld, ResumePart::kReleased, ResumePart::kFence}) {
    const auto declared = Declared(part);
    ASSERT_EQ(declared.size(), 1u);
    EXPECT_EQ(declared[0].count, 0u);
    EXPECT_EQ(declared[0].epoch, 1u);
  }
  EXPECT_EQ(daemon->Count(FrameType::kBye), 1u);
  EXPECT_EQ(daemon->Count(FrameType::kHello), 2u);
  EXPECT_EQ(daemon->held_units(), 4u);
}

/// The same with memory that needs no context: that is left, and nothing else.
TEST_F(ClientResume, WhatOutlivesAContextThatEndsWithoutADaemonIsDeclared) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(client->CreatePhysical(&handle, 4096, &prop, 0), CUDA_SUCCESS);
  CUdeviceptr managed = 0;
  ASSERT_EQ(client->AllocManaged(&managed, 1000, 1), CUDA_SUCCESS);
  daemon->HangUp();
  EXPECT_EQ(client->ContextDestroy(driver.context), CUDA_SUCCESS);
  AllocAsync(kUnit);
  const auto declared = Declared(ResumePart::kFence);
  ASSERT_EQ(declared.size(), 1u);
  EXPECT_EQ(declared[0].outside_bytes[static_cast<size_t>(protocol::Family::kPhysical)], 4096u);
  EXPECT_EQ(declared[0].outside_bytes[static_cast<size_t>(protocol::Family::kManaged)], 0u);
  EXPECT_EQ(daemon->Count(FrameType::kCharge), 2u) << "each was charged once";
  EXPECT_EQ(daemon->Count(FrameType::kUncharge), 0u);
}

/// The goodbye was in the queue of a daemon that died: its successor refuses a process that it
/// takes for absent, is told, and takes it.
TEST_F(ClientResume, AGoodbyeThatWasLostIsSaidAgain) {
  AllocAsync(2 * kUnit);
  EXPECT_EQ(client->ContextDestroy(driver.context), CUDA_SUCCESS);
  daemon->Wait(FrameType::kBye, 1);
  daemon->on_hello = [this] { daemon->Close("this process has the memory from before"); };
  AllocAsync(4 * kUnit);
  EXPECT_EQ(daemon->Count(FrameType::kResume), 3u);
  EXPECT_EQ(daemon->Count(FrameType::kBye), 2u);
  EXPECT_EQ(daemon->Count(FrameType::kHello), 3u);
}

/// Another refusal stays one, and is what the program is told.
TEST_F(ClientResume, ARefusalThatStaysIsSaid) {
  AllocAsync(2 * kUnit);
  EXPECT_EQ(client->ContextDestroy(driver.context), CUDA_SUCCESS);
  const auto refuse = [this] { daemon->Close("the job is over"); };
  daemon->on_hello = [this, refuse] {
    refuse();
    daemon->on_hello = refuse;
  };
  testing::internal::CaptureStderr();
  CUdeviceptr at = 0;
  EXPECT_EQ(client->AllocAsync(&at, kUnit, FakeDriver::Stream(1)), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(Contains(testing::internal::GetCapturedStderr(), "the job is over"));
}

// A daemon that ends a session with a reason is not one that died.
TEST_F(ClientResume, ARefusalIsFinal) {
  AllocAsync(kUnit);
  daemon->on_request = [this](const protocol::Header&) { daemon->Close("you broke a rule"); };
  testing::internal::CaptureStderr();
  CUdeviceptr at = 0;
  EXPECT_EQ(client->AllocAsync(&at, 4 * kUnit, FakeDriver::Stream(1)), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(Contains(testing::internal::GetCapturedStderr(), "you broke a rule"));
  EXPECT_EQ(daemon->Count(FrameType::kResume), 0u);
}

class ClientResumeLaunch : public ClientLaunch {
 protected:
  void SetUp() override { Start({.socket_is_kept = true}); }
};

// The declaration names the profile that is not followed. What is given up behind it, while no
// daemon could be told, is said when there is one.
TEST_F(ClientResumeLaunch, TellsOfAProfileThatWasGivenUpMeanwhile) {
  AllocAsync(1);
  Publish(protocol::TroughPlace::kAfterLast, 1);
  Iteration();
  Launches(0, 4);
  std::promise<void> declared;
  std::promise<void> goes_on;
  daemon->on_declared = [&] {
    declared.set_value();
    goes_on.get_future().wait();
  };
  daemon->HangUp();
  std::thread other([this] { AllocAsync(4 * kUnit); });
  declared.get_future().wait();
  for (int i = 0; i < 30; ++i) Launch("evaluation");
  EXPECT_EQ(daemon->Count(FrameType::kMismatch), 0u);
  goes_on.set_value();
  other.join();
  const auto frames = daemon->Wait(FrameType::kMismatch, 1);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(reinterpret_cast<const protocol::Mismatch*>(frames[0].data())->profile, profile_);
}

}  // namespace
}  // namespace sluice::test
