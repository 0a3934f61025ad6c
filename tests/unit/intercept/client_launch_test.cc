// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "tests/unit/intercept/launch_fixture.h"

namespace sluice::test {
namespace {

using protocol::FrameType;
using protocol::OpKind;
using protocol::TroughPlace;

TEST_F(ClientLaunch, LaunchesAreRecordedByKernelName) {
  AllocAsync(1);
  Iteration();
  daemon->WaitReady();
  const auto records = Records();
  ASSERT_EQ(records.size(), 1 + kPeriod);
  for (uint32_t i = 0; i < kPeriod; ++i) {
    EXPECT_EQ(records[1 + i].kind, static_cast<uint8_t>(OpKind::kLaunch));
    EXPECT_EQ(records[1 + i].value, NameHash(kCycle[i]));
    EXPECT_EQ(records[1 + i].detail, i);
    EXPECT_EQ(records[1 + i].stream, 1);
  }
}

TEST_F(ClientLaunch, TellsTheDaemonOfKernelsThatWaitForOtherGpus) {
  AllocAsync(1);
  Iteration();
  daemon->WaitReady();
  EXPECT_EQ(daemon->client->collectives.load(), 0u);
  Launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  EXPECT_EQ(daemon->client->collectives.load(), 1u);
  Iteration();
  EXPECT_EQ(daemon->client->collectives.load(), 1u) << "from then on";
}

/// A launch takes a CUkernel, too, of which cuFuncGetName may know nothing.
TEST_F(ClientLaunch, AsksForTheNameOfAKernelThatIsNoFunction) {
  driver.table().cuFuncGetName = [](const char**, CUfunction) { return CUDA_ERROR_INVALID_HANDLE; };
  driver.table().cuKernelGetName = [](const char** name, CUkernel kernel) {
    *name = reinterpret_cast<const char*>(kernel);
    return CUDA_SUCCESS;
  };
  AllocAsync(1);
  Launch("conv");
  daemon->WaitReady();
  EXPECT_EQ(Records().back().value, NameHash("conv"));
}

TEST_F(ClientLaunch, AFailedLaunchIsNoLaunch) {
  AllocAsync(1);
  EXPECT_EQ(client->Launch(FakeDriver::Function("conv"), FakeDriver::Stream(1),
                           [] { return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES; }),
            CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  daemon->WaitReady();
  EXPECT_EQ(Records().size(), 1u);
}

TEST_F(ClientLaunch, WhileNobodyWaitsAStreamIsSeldomMarked) {
  AllocAsync(1);
  for (uint32_t i = 1; i < kCalmFactor * kMarkLaunches; ++i) Launch("k");
  EXPECT_EQ(driver.marks, 0);
  Launch("k");
  EXPECT_EQ(driver.marks, 1);
}

TEST_F(ClientLaunch, UnderPressureAStreamIsMarkedEverySixteenLaunches) {
  AllocAsync(1);
  daemon->daemon->flags = protocol::kPressure;
  for (int i = 0; i < 15; ++i) Launch("k");
  EXPECT_EQ(driver.marks, 0);
  Launch("k");
  EXPECT_EQ(driver.marks, 1);
  for (int i = 0; i < 16; ++i) Launch("k");
  EXPECT_EQ(driver.marks, 2);
}

TEST_F(ClientLaunch, AtTheTroughTheClientAlwaysAsks) {
  AllocAsync(1);
  Publish(TroughPlace::kBeforeFirst, 1);
  Iteration();
  EXPECT_EQ(daemon->Count(FrameType::kGate), 0u) << "the trough is before the next launch";
  Iteration();
  Iteration();
  Launch(kCycle[0]);
  const auto gates = Gates(3);
  ASSERT_EQ(gates.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(gates[i].gate, 0u);
    EXPECT_EQ(gates[i].profile, 1u);
    EXPECT_EQ(gates[i].iteration, i);
    EXPECT_EQ(gates[i].held_units, 1u);
    EXPECT_EQ(gates[i].drained, 0u) << "nobody waits for memory";
  }
  uint32_t iterations = 0;
  for (const auto& record : Records()) {
    if (record.kind != static_cast<uint8_t>(OpKind::kIteration)) continue;
    EXPECT_EQ(record.value, iterations++);
  }
  EXPECT_EQ(iterations, 3u);
}

TEST_F(ClientLaunch, AfterLastAsksInTheHookOfTheLastLaunch) {
  AllocAsync(1);
  Publish(TroughPlace::kAfterLast, 1);
  Launches(0, kPeriod - 1);
  EXPECT_EQ(daemon->Count(FrameType::kGate), 0u);
  Launch(kCycle[kPeriod - 1]);
  EXPECT_EQ(Gates(1).size(), 1u);
}

TEST_F(ClientLaunch, OtherStreamsPass) {
  AllocAsync(1);
  AllocAsync(1, FakeDriver::Stream(2));
  Publish(TroughPlace::kAfterLast, 1);
  for (const char* name : kCycle) {
    Launch(name);
    Launch("copy helper", FakeDriver::Stream(2));
  }
  EXPECT_EQ(Gates(1).size(), 1u);
}

TEST_F(ClientLaunch, ALaunchAtAGateWaitsWithoutOurLocks) {
  driver.immediate = true;
  AllocAsync(1);
  Publish(TroughPlace::kAfterLast, 1);
  std::atomic<uint32_t> seq{0};
  daemon->on_request = [&](const protocol::Header& request) { seq = request.seq; };
  std::thread gated([&] { Iteration(); });
  Gates(1);
  // Everything that needs no new memory goes on while the launch waits.
  const CUstream s2 = FakeDriver::Stream(2);
  const CUdeviceptr a = AllocAsync(512, s2);
  EXPECT_EQ(client->FreeAsync(a, s2), CUDA_SUCCESS);
  Launch("other", s2);
  EXPECT_EQ(client->StreamSynchronize(s2), CUDA_SUCCESS);
  size_t free_bytes = 0;
  size_t total = 0;
  EXPECT_EQ(client->MemGetInfo(&free_bytes, &total), CUDA_SUCCESS);
  while (seq == 0) std::this_thread::yield();
  daemon->Grant(seq, {{1, 2}}, 0);
  gated.join();
  EXPECT_GT(daemon->client->gate_wait_ns.load(), 0u);
  EXPECT_EQ(daemon->client->held_bytes.load(), 3 * kUnit);
}

TEST_F(ClientLaunch, UnderPressureTheTroughIsDrainedAndFreeUnitsGoBack) {
  driver.immediate = true;
  const CUdeviceptr keep = AllocAsync(kUnit);
  const CUdeviceptr a = AllocAsync(4 * kUnit);
  const CUdeviceptr b = AllocAsync(kUnit, FakeDriver::Stream(2));
  Publish(TroughPlace::kAfterLast, 6);
  daemon->daemon->flags = protocol::kPressure;
  EXPECT_EQ(client->FreeAsync(a, FakeDriver::Stream(1)), CUDA_SUCCESS);
  EXPECT_EQ(client->FreeAsync(b, FakeDriver::Stream(2)), CUDA_SUCCESS);
  Iteration();
  const auto gates = Gates(1);
  EXPECT_EQ(gates[0].drained, 1u);
  EXPECT_EQ(gates[0].held_units, 1u);
  const auto releases = daemon->Wait(FrameType::kRelease, 1);
  const auto* release = reinterpret_cast<const protocol::Release*>(releases[0].data());
  EXPECT_EQ(release->terms, 0u) << "the drain has waited for the GPU";
  EXPECT_EQ(daemon->held_units(), 1u);
  EXPECT_EQ(client->FreeAsync(keep, FakeDriver::Stream(1)), CUDA_SUCCESS);
}

TEST_F(ClientLaunch, AGateAsksOnlyForWhatIsNotHeld) {
  AllocAsync(2 * kUnit);
  Publish(TroughPlace::kAfterLast, 2, {{3, 2}, {5, 6}});
  daemon->on_request = [this](const protocol::Header& request) {
    const auto& gate = reinterpret_cast<const protocol::Gate&>(request);
    daemon->Grant(
        request.seq,
        gate.gate == 2 ? std::vector<protocol::Extent>{{2, 4}} : std::vector<protocol::Extent>{},
        gate.gate);
  };
  Iteration();
  Iteration();
  const auto gates = Gates(3);
  ASSERT_EQ(gates.size(), 3u);
  EXPECT_EQ(gates[0].gate, 0u);
  EXPECT_EQ(gates[1].gate, 2u) << "gate 1 needs no more than is held";
  EXPECT_EQ(gates[1].held_units, 2u);
  EXPECT_EQ(gates[2].gate, 0u);
  AllocAsync(4 * kUnit);
  EXPECT_EQ(daemon->Count(FrameType::kLease), 1u) << "the grant covers the group";
}

class ClientFence : public ClientLaunch {
 protected:
  /// Behind gate 1, of two units, with four that are free and that the GPU has not passed.
  void FreeBehindTheGpu() {
    const CUdeviceptr a = AllocAsync(4 * kUnit);
    AllocAsync(kUnit);
    Publish(TroughPlace::kAfterLast, 5, {{3, 2}});
    Iteration();
    Gates(1);
    daemon->daemon->flags = protocol::kPressure;
    Launches(0, 2);
    EXPECT_EQ(client->FreeAsync(a, FakeDriver::Stream(1)), CUDA_SUCCESS);
    Launches(2, 3);
  }
  /// The release of units in the middle of an iteration, with the GPU far behind: by a job that
  /// waits for more, which it is granted when it has given these back.
  protocol::Release ReleaseBehindTheGpu() {
    FreeBehindTheGpu();
    daemon->on_request = [this](const protocol::Header& request) {
      if (request.type != static_cast<uint16_t>(FrameType::kLease)) {
        return daemon->AnswerAsUsual(request);
      }
      std::memcpy(&lease_, &request, sizeof lease_);
    };
    daemon->on_release = [this](const protocol::Release&) {
      if (lease_.units > 0) daemon->AnswerAsUsual(lease_.header);
      lease_.units = 0;
    };
    AllocAsync(6 * kUnit);
    const FakeDaemon::Bytes frame = daemon->Wait(FrameType::kRelease, 1).front();
    protocol::Release release{};
    std::memcpy(&release, frame.data(), frame.size());
    EXPECT_EQ(release.terms, 1u);
    EXPECT_EQ(release.fence[0].slot, 1u);
    EXPECT_FALSE(Reached(release));
    return release;
  }
  bool Reached(const protocol::Release& release) const {
    return protocol::MarkReached(daemon->marks->mark[1].load(), release.fence[0].value);
  }
  static uint32_t Units(const protocol::Release& release) {
    uint32_t units = 0;
    for (uint32_t i = 0; i < release.extents; ++i) units += release.extent[i].length;
    return units;
  }

 private:
  protocol::Lease lease_{};
};

// What the GPU has not passed is nobody else's yet: given back, it would have to be leased anew.
TEST_F(ClientFence, ExcessStaysUntilTheGpuHasPassedIt) {
  FreeBehindTheGpu();
  EXPECT_EQ(daemon->Count(FrameType::kRelease), 0u);
  const size_t leases = daemon->Count(FrameType::kLease);
  const CUdeviceptr again = AllocAsync(4 * kUnit);
  EXPECT_EQ(daemon->Count(FrameType::kLease), leases) << "its own stream may use it at once";
  EXPECT_EQ(client->FreeAsync(again, FakeDriver::Stream(1)), CUDA_SUCCESS);
  driver.immediate = true;
  driver.RunAll();
  Launches(3, kPeriod);  // the trough is behind the last of them
  const std::vector<FakeDaemon::Bytes> frames = daemon->Wait(FrameType::kRelease, 1);
  protocol::Release release{};
  std::memcpy(&release, frames.front().data(), frames.front().size());
  EXPECT_EQ(release.terms, 0u) << "there is nothing left to wait for";
}

TEST_F(ClientFence, WhoeverWaitsGivesExcessBackWithAFence) {
  const protocol::Release release = ReleaseBehindTheGpu();
  EXPECT_EQ(Units(release), 3u) << "two of five units are needed until the next gate";
  driver.RunAll();
  EXPECT_TRUE(Reached(release));
}

// The mark may be dropped with its context; what it would have said is true.
TEST_F(ClientFence, TheEndOfTheContextReachesEveryFence) {
  const protocol::Release release = ReleaseBehindTheGpu();
  EXPECT_EQ(client->ContextDestroy(driver.context), CUDA_SUCCESS);
  daemon->Wait(FrameType::kBye, 1);
  EXPECT_TRUE(Reached(release));
  EXPECT_EQ(daemon->held_units(), 0u);
}

// Which units a job keeps: the group behind gate 1 was seen to ask for two units in one run.
TEST_F(ClientLaunch, ARunForTheLargestBlockOfTheGroupIsKept) {
  driver.immediate = true;
  const CUdeviceptr alone = AllocAsync(kUnit);
  AllocAsync(kUnit);  // between them
  EXPECT_EQ(client->FreeAsync(AllocAsync(2 * kUnit), FakeDriver::Stream(1)), CUDA_SUCCESS);
  Publish(TroughPlace::kAfterLast, 4, {{3, 3}});
  Iteration();
  Gates(1);
  Launches(0, 3);
  const CUdeviceptr large = AllocAsync(2 * kUnit);
  Launches(3, kPeriod);
  Gates(2);
  Launches(0, 2);
  EXPECT_EQ(client->FreeAsync(alone, FakeDriver::Stream(1)), CUDA_SUCCESS);
  EXPECT_EQ(client->FreeAsync(large, FakeDriver::Stream(1)), CUDA_SUCCESS);
  daemon->daemon->flags = protocol::kPressure;
  Launches(2, 3);
  daemon->Wait(FrameType::kRelease, 1);
  EXPECT_EQ(daemon->held_units(), 3u);
  const size_t leases = daemon->Count(FrameType::kLease);
  EXPECT_EQ(AllocAsync(2 * kUnit), large) << "the unit that lay alone went";
  EXPECT_EQ(daemon->Count(FrameType::kLease), leases);
}

TEST_F(ClientLaunch, WithoutPressureNothingGoesBack) {
  driver.immediate = true;
  const CUdeviceptr a = AllocAsync(4 * kUnit);
  EXPECT_EQ(client->FreeAsync(a, FakeDriver::Stream(1)), CUDA_SUCCESS);
  Publish(TroughPlace::kAfterLast, 1, {{3, 1}});
  for (int i = 0; i < 5; ++i) Iteration();
  Gates(5);
  EXPECT_EQ(daemon->Count(FrameType::kRelease), 0u);
}

TEST_F(ClientLaunch, WithoutAProfileReachedUnitsGoBackUnderPressure) {
  const CUdeviceptr a = AllocAsync(4 * kUnit);
  EXPECT_EQ(client->FreeAsync(a, FakeDriver::Stream(1)), CUDA_SUCCESS);
  daemon->WaitReady();
  daemon->daemon->flags = protocol::kPressure;
  for (int i = 0; i < 16; ++i) Launch("k");
  EXPECT_EQ(daemon->Count(FrameType::kRelease), 0u) << "its own stream may want them before that";
  driver.RunAll();
  for (int i = 0; i < 16; ++i) Launch("k");
  daemon->Wait(FrameType::kRelease, 1);
  EXPECT_EQ(daemon->held_units(), 0u);
}

// Whose allocations and frees ask for marks so often that no launch ever does.
TEST_F(ClientLaunch, WithoutAProfileBusyAllocatingGivesBackUnderPressure) {
  driver.immediate = true;
  EXPECT_EQ(client->FreeAsync(AllocAsync(28 * kUnit), FakeDriver::Stream(1)), CUDA_SUCCESS);
  daemon->WaitReady();
  daemon->daemon->flags = protocol::kPressure;
  for (int i = 0; i < 64; ++i) {
    const CUdeviceptr a = AllocAsync(8 * kUnit);
    Launch("k");
    EXPECT_EQ(client->FreeAsync(a, FakeDriver::Stream(1)), CUDA_SUCCESS);
  }
  daemon->Wait(FrameType::kRelease, 1);
  EXPECT_LE(daemon->client->held_bytes.load(), 8 * kUnit);
}

// What is given back has to be asked for again.
TEST_F(ClientLaunch, WithoutAProfileALookAtWhatIsFreeComesEverySixteenLaunches) {
  FakeDaemon::Options options;
  options.unit_bytes = kMarkBytes;
  Start(options);
  driver.immediate = true;
  AllocAsync(512);
  daemon->WaitReady();
  daemon->daemon->flags = protocol::kPressure;
  constexpr size_t kRounds = 160;
  for (size_t i = 0; i < kRounds; ++i) {
    const CUdeviceptr a = AllocAsync(2 * kMarkBytes);
    Launch("k");
    EXPECT_EQ(client->FreeAsync(a, FakeDriver::Stream(1)), CUDA_SUCCESS);
    Launch("k");
  }
  EXPECT_GT(daemon->Count(FrameType::kRelease), 0u);
  EXPECT_LE(daemon->Count(FrameType::kRelease), 2 * kRounds / kMarkLaunches);
}

TEST_F(ClientLaunch, AMismatchIsSaidOnceAndTheProfileIsDropped) {
  AllocAsync(1);
  Publish(TroughPlace::kAfterLast, 1);
  Iteration();
  Launches(0, 4);
  for (int i = 0; i < 30; ++i) Launch("evaluation");
  const auto frames = daemon->Wait(FrameType::kMismatch, 1);
  EXPECT_EQ(reinterpret_cast<const protocol::Mismatch*>(frames[0].data())->profile, 1u);
  for (int i = 0; i < 3; ++i) Iteration();
  EXPECT_EQ(daemon->Count(FrameType::kMismatch), 1u);
  EXPECT_EQ(daemon->Count(FrameType::kGate), 1u);
  Publish(TroughPlace::kAfterLast, 1);  // a new profile is followed again
  Iteration();
  EXPECT_EQ(Gates(2)[1].profile, 2u);
}

TEST_F(ClientLaunch, CreditHoldsTheCpuBackUntilTheGpuFollows) {
  AllocAsync(1);
  Publish(TroughPlace::kAfterLast, 1, {}, 4000);  // four launches
  driver.immediate = true;
  daemon->daemon->flags = protocol::kPressure;
  Iteration();
  driver.immediate = false;
  std::atomic<uint32_t> issued{0};
  std::thread ahead([&] {
    for (int i = 0; i < 40; ++i) {
      Launch(kCycle[static_cast<size_t>(i) % kPeriod]);
      ++issued;
    }
  });
  // The GPU does one operation at a time; the CPU is never more than the credit ahead. It waits for
  // all of them at the trough.
  const CUstream stream = FakeDriver::Stream(1);
  while (daemon->client->credit_wait_ns == 0) std::this_thread::yield();
  EXPECT_LT(issued, 40u);
  size_t most = 0;
  while (issued < 40) {
    const size_t pending = driver.Pending(stream);
    most = std::max(most, pending);
    if (pending >= 4 || issued % kPeriod == kPeriod - 1) driver.Run(stream, 1);
    std::this_thread::yield();
  }
  driver.RunAll();
  ahead.join();
  EXPECT_LE(most, 14u) << "launches and marks";
}

// Memory that the GPU has not reached yet is in nobody's way then.
TEST_F(ClientLaunch, WithoutPressureNobodyWaitsForTheCredit) {
  AllocAsync(1);
  Publish(TroughPlace::kAfterLast, 1, {}, 1);
  for (int i = 0; i < 20; ++i) Iteration();  // would hang: the GPU does nothing
  EXPECT_EQ(driver.marks, 0);
  // From the next launch on the CPU is held back, however far ahead it is by then.
  daemon->daemon->flags = protocol::kPressure;
  std::atomic<bool> done{false};
  std::thread ahead([&] {
    Launches(0, 4);
    done = true;
  });
  const CUstream stream = FakeDriver::Stream(1);
  while (daemon->client->credit_wait_ns == 0) std::this_thread::yield();
  EXPECT_FALSE(done);
  size_t pending = driver.Pending(stream);
  while (!done) {
    driver.Run(stream, 1);
    pending = driver.Pending(stream);
    std::this_thread::yield();
  }
  ahead.join();
  EXPECT_LE(pending, 2 * Credit::kKeepQueued) << "launches and marks";
}

TEST_F(ClientLaunch, WithTheCreditOffNobodyWaits) {
  AllocAsync(1);
  Publish(TroughPlace::kAfterLast, 1, {}, 1);
  daemon->daemon->flags = protocol::kCreditOff;
  for (int i = 0; i < 20; ++i) Iteration();  // would hang: the GPU does nothing
  EXPECT_EQ(daemon->client->credit_wait_ns.load(), 0u);
}

TEST_F(ClientLaunch, LaunchesAreTimedWithoutWaiting) {
  AllocAsync(1);
  daemon->WaitReady();
  daemon->daemon->flags = protocol::kWantTimes;
  Launches(0, 4);
  driver.RunAll();
  Launches(4, 8);
  EXPECT_FALSE(driver.unrelaxed_call);
  uint32_t timed = 0;
  for (const auto& record : Records()) {
    if (record.kind != static_cast<uint8_t>(OpKind::kLaunchTime)) continue;
    EXPECT_EQ(record.value, 250'000u);
    EXPECT_EQ(record.detail, timed++);
    EXPECT_EQ(record.stream, 1);
  }
  EXPECT_EQ(timed, 4u) << "the four that the GPU has passed";
}

TEST_F(ClientLaunch, AFullRingDropsAndCounts) {
  AllocAsync(1);
  driver.immediate = true;
  for (uint32_t i = 0; i < protocol::kRingRecords + 10; ++i) Launch("k");
  EXPECT_EQ(daemon->client->lost.load(), 11u);
}

// The session goes on in another context, and the launches that paced it do not come any more.
TEST_F(ClientLaunch, AProfileEndsWithTheContextOfItsStream) {
  AllocAsync(1);
  auto* second = reinterpret_cast<CUcontext>(0xe2);
  ASSERT_EQ(client->ContextCreate(&second, [] { return CUDA_SUCCESS; }), CUDA_SUCCESS);
  Publish(TroughPlace::kBeforeFirst, 1);
  Iteration();
  Iteration();
  EXPECT_EQ(daemon->Count(FrameType::kMismatch), 0u);
  const CUcontext first = std::exchange(driver.context, second);
  EXPECT_EQ(client->ContextDestroy(first), CUDA_SUCCESS);
  EXPECT_TRUE(client->has_session());
  const auto frames = daemon->Wait(FrameType::kMismatch, 1);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(reinterpret_cast<const protocol::Mismatch*>(frames[0].data())->profile, profile_);
}

// What lasts lies in units of its own (docs/adr/0033). A block that is freed after the last launch
// and before the trough does not last: it has the first hole.
TEST_F(ClientLaunch, OnlyWhatLivesAtTheTroughLasts) {
  for (const bool lives : {false, true}) {
    Start({});
    profile_ = 0;
    const CUdeviceptr first = AllocAsync(kUnit / 2);
    const CUdeviceptr hole = AllocAsync(kUnit / 2);
    const CUdeviceptr free_unit = AllocAsync(kUnit);
    for (const CUdeviceptr at : {hole, free_unit}) client->FreeAsync(at, FakeDriver::Stream(1));
    AllocAsync(2 * kUnit);  // what is free is looked through
    Publish(TroughPlace::kBeforeFirst, 4);
    Iteration();
    CUdeviceptr small = 0;
    for (int i = 0; i < 4; ++i) {
      Launch(kCycle[0]);
      if (lives && small != 0) client->FreeAsync(small, FakeDriver::Stream(1));
      small = AllocAsync(1024);
      Launches(1, kPeriod);
      if (!lives) client->FreeAsync(small, FakeDriver::Stream(1));
    }
    EXPECT_EQ((small - first) / kUnit, lives ? 1u : 0u);
  }
}

}  // namespace
}  // namespace sluice::test
