// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <initializer_list>
#include <utility>
#include <vector>

#include "tests/unit/intercept/launch_fixture.h"

namespace sluice::test {
namespace {

using protocol::TroughPlace;

// As gradients are: allocated while the pass backward frees what the one forward left, freed when
// the next iteration begins. Wherever one lies at the trough its unit is held there; by itself it
// would lie in the tightest place that there is.
TEST_F(ClientLaunch, WhatOutlivesTheIterationLiesTogetherAtTheTrough) {
  driver.immediate = true;
  std::vector<CUdeviceptr> kept;
  AllocAsync(kUnit);
  Publish(TroughPlace::kAfterLast, 1);
  daemon->daemon->flags = protocol::kPressure;
  std::vector<uint32_t> held;
  for (uint32_t iteration = 0; iteration < 4; ++iteration) {
    for (const CUdeviceptr one : std::exchange(kept, {})) {
      EXPECT_EQ(client->FreeAsync(one, FakeDriver::Stream(1)), CUDA_SUCCESS);
    }
    std::vector<CUdeviceptr> forward;
    for (int i = 0; i < 4; ++i) {
      forward.push_back(AllocAsync(kUnit / 8));
      forward.push_back(AllocAsync(kUnit - kUnit / 8));
    }
    forward.push_back(AllocAsync(kUnit));
    Launches(0, 4);
    for (const size_t i : {8u, 0u, 2u, 4u, 6u, 1u, 3u, 5u, 7u}) {
      EXPECT_EQ(client->FreeAsync(forward[i], FakeDriver::Stream(1)), CUDA_SUCCESS);
      if (i % 2 == 0 && i < 8) kept.push_back(AllocAsync(kUnit / 8 - kGranuleBytes));
    }
    Launches(4, kPeriod);
    held.push_back(Gates(iteration + 1).back().held_units);
  }
  // The cycle is known behind the first iteration, and who outlives the second in the third.
  EXPECT_GE(held[1], 4u);
  EXPECT_LE(held[2], 2u);
  EXPECT_EQ(held[3], held[2]);
}

class ClientPlaces : public ClientLaunch {
 protected:
  /// The cycle is known, and at its last trough the job gave back.
  void GiveBack() {
    driver.immediate = true;
    AllocAsync(kUnit);
    Publish(TroughPlace::kAfterLast, 1);
    Pressure(protocol::kPressure);
    PassTroughs();
  }
  void Pressure(uint32_t flags) { daemon->daemon->flags = flags; }
  void PassTroughs() {
    Iteration();
    Iteration();
    Gates(troughs_ += 2);
  }

  /// Of two places with room, the large one first, a small block is in the tight one; else it has
  /// to be in the first.
  bool TakesTightest() {
    const CUdeviceptr large = AllocAsync(kUnit / 2);
    const CUdeviceptr between = AllocAsync(kUnit / 4);
    const CUdeviceptr tight = AllocAsync(kUnit / 8);
    const CUdeviceptr behind = AllocAsync(kUnit / 8);
    EXPECT_TRUE(large < between && between < tight && tight < behind);
    Free({large, tight});
    // More than what is set aside for the next one of its size.
    const CUdeviceptr small = AllocAsync(kUnit / 8 - kGranuleBytes);
    EXPECT_TRUE(small == large || small == tight);
    Free({small, between, behind});
    return small == tight;
  }

 private:
  void Free(std::initializer_list<CUdeviceptr> blocks) {
    for (const CUdeviceptr one : blocks) {
      EXPECT_EQ(client->FreeAsync(one, FakeDriver::Stream(1)), CUDA_SUCCESS);
    }
  }

  uint32_t troughs_ = 0;
};

TEST_F(ClientPlaces, WhoGaveBackTakesTheTightest) {
  GiveBack();
  EXPECT_TRUE(TakesTightest());
  Pressure(0);
  PassTroughs();
  EXPECT_FALSE(TakesTightest());
  Pressure(protocol::kPressure);
  EXPECT_FALSE(TakesTightest()) << "not before its trough";
  PassTroughs();
  EXPECT_TRUE(TakesTightest());
}

TEST_F(ClientPlaces, WhoMayRunAheadWithoutBoundDoesNotGiveBack) {
  GiveBack();
  Pressure(protocol::kPressure | protocol::kCreditOff);
  PassTroughs();
  EXPECT_FALSE(TakesTightest());
}

// Its trough, where it would be found out, may not come any more.
TEST_F(ClientPlaces, WhoIsLeftAloneTakesTheFirstAtOnce) {
  GiveBack();
  Pressure(0);
  EXPECT_FALSE(TakesTightest());
}

TEST_F(ClientPlaces, WhoLeftItsCycleTakesTheFirst) {
  GiveBack();
  for (uint32_t i = 0; i < kPeriod; ++i) Launch("other");
  EXPECT_FALSE(TakesTightest());
  Publish(TroughPlace::kAfterLast, 1);
  for (uint32_t i = 0; i < 2 * kPeriod; ++i) Launch("other");
  EXPECT_FALSE(TakesTightest()) << "a cycle that it is not in";
}

TEST_F(ClientPlaces, WhoHasLostItsDaemonTakesTheFirst) {
  GiveBack();
  const CUdeviceptr room = AllocAsync(kUnit);
  daemon->HangUp();
  CUdeviceptr none = 0;
  EXPECT_EQ(client->AllocAsync(&none, 30 * kUnit, FakeDriver::Stream(1)), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(client->FreeAsync(room, FakeDriver::Stream(1)), CUDA_SUCCESS);
  Iteration();
  EXPECT_FALSE(TakesTightest());
}

TEST_F(ClientPlaces, ANewSessionBeginsWithTheFirst) {
  GiveBack();
  static_cast<void>(client->ContextDestroy(driver.context));
  AllocAsync(kUnit);
  daemon->WaitReady();
  Publish(TroughPlace::kBeforeFirst, 1);
  Pressure(protocol::kPressure);
  Iteration();
  EXPECT_FALSE(TakesTightest()) << "its first trough comes with the next launch";
}

/// Units are handles, so that a block may be made of some that lie apart.
class ClientPieces : public ClientPlaces {
 protected:
  void SetUp() override {
    FakeDaemon::Options options;
    options.handles = 32;
    options.units_per_handle = 1;
    Start(options);
  }

  /// So many units are free, and apart.
  void Scatter(size_t apart) {
    std::vector<CUdeviceptr> units;
    for (size_t i = 0; i < 2 * apart + 1; ++i) units.push_back(AllocAsync(kUnit));
    for (size_t i = 1; i < units.size(); i += 2) {
      EXPECT_EQ(client->FreeAsync(units[i], FakeDriver::Stream(1)), CUDA_SUCCESS);
    }
    asked_ = daemon->Count(protocol::FrameType::kLease);
  }
  size_t AskedSince() { return daemon->Count(protocol::FrameType::kLease) - asked_; }

  /// How often it asks the daemon for two units where two are free, and apart.
  size_t AsksForTwo() {
    Scatter(2);
    AllocAsync(2 * kUnit);
    return AskedSince();
  }

  static constexpr size_t kOneAndAHalf = kUnit + kUnit / 2;

 private:
  size_t asked_ = 0;
};

TEST_F(ClientPieces, WhoHoldsWhatItsGroupNeedsAsksForNoRun) {
  GiveBack();
  EXPECT_EQ(AsksForTwo(), 0u);
}

TEST_F(ClientPieces, WhoIsAloneAsksForARun) {
  GiveBack();
  Pressure(0);
  EXPECT_EQ(AsksForTwo(), 1u);
}

TEST_F(ClientPieces, WhoHoldsLessThanItsGroupNeedsAsksForARun) {
  GiveBack();
  Publish(TroughPlace::kAfterLast, 20);
  daemon->on_request = [&](const protocol::Header& request) {
    if (request.type != static_cast<uint16_t>(protocol::FrameType::kGate))
      return daemon->AnswerAsUsual(request);
    daemon->Deny(request.seq, protocol::DenyCode::kExhausted, "a test");
  };
  PassTroughs();
  EXPECT_EQ(AsksForTwo(), 1u);
}

TEST_F(ClientPieces, ARunIsAskedForWhereTheDriverMapsNothing) {
  GiveBack();
  driver.retain_result = CUDA_ERROR_UNKNOWN;
  EXPECT_EQ(AsksForTwo(), 1u);
}

TEST_F(ClientPieces, TheNextBlockBeginsInTheUnitOfTheLast) {
  GiveBack();
  Scatter(3);
  const CUdeviceptr one = AllocAsync(kOneAndAHalf);
  EXPECT_EQ(AllocAsync(kOneAndAHalf), one + kOneAndAHalf);
  EXPECT_EQ(AskedSince(), 0u);
}

TEST_F(ClientPieces, AnotherThreadMayBeFasterWhileItIsMapped) {
  GiveBack();
  Scatter(4);
  const CUdeviceptr one = AllocAsync(kOneAndAHalf);
  CUdeviceptr faster = 0;
  driver.on_map = [&] { faster = AllocAsync(kUnit / 2); };
  const CUdeviceptr other = AllocAsync(kOneAndAHalf);
  EXPECT_EQ(faster, one + kOneAndAHalf) << "there the other one was to begin";
  EXPECT_NE(other, 0u);
  EXPECT_EQ(AskedSince(), 0u);
}

/// What was free in its units was freed on the stream, and the GPU has not come there.
TEST_F(ClientPieces, WhatIsLeftOfAUnitIsNoOtherStreamsYet) {
  GiveBack();
  driver.immediate = false;
  Scatter(2);
  const CUdeviceptr block = AllocAsync(kOneAndAHalf);
  EXPECT_EQ(AskedSince(), 0u);
  const CUdeviceptr others = AllocAsync(kUnit / 2, FakeDriver::Stream(2));
  EXPECT_TRUE(others < block || others >= block + 2 * kUnit);
  EXPECT_EQ(AllocAsync(kUnit / 2), block + kOneAndAHalf);
}

}  // namespace
}  // namespace sluice::test
