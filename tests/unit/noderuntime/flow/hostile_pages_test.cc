// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// A client that writes anything into its pages at any time. The daemon reads each word once, so all
// that comes of it is that client's own loss. What matters most here runs under ThreadSanitizer
// (scripts/check sanitize): a plain read of a page would be reported.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "scheduler/audit/audit.h"
#include "tests/unit/noderuntime/flow/flow_fixture.h"

namespace sluice::flow {
namespace {

class HostilePagesTest : public FlowTest {
 protected:
  static constexpr JobId kHonest = 1;
  static constexpr JobId kHostile = 2;

  void SetUp() override {
    Start(kHonest, 8, 8);
    ASSERT_TRUE(Lease(kHonest, 4).ok());
    Start(kHostile);
    Pass(120 * kS);  // the honest one shows no sign of life: it is taken to hold its limit for good
    Pass(6 * kS);
    ASSERT_TRUE(Lease(kHostile, 1).ok());
    ASSERT_EQ(Known(kHostile).phase, scheduler::Phase::kUnprofiled);
  }
  /// Gives a unit back behind a fence and asks for it again.
  void HonestTurn(uint64_t mark) {
    const Extents held = flow_->ledger().map().Held(kHonest, scheduler::UnitState::kLeased);
    const Units unit = held.back().end() - 1;
    ASSERT_TRUE(Release(kHonest, {{unit, 1}}, {{3, 0, mark}}).ok());
    Pass(kMs);
    ASSERT_EQ(Known(kHonest).unfenced, 1u) << "its fence is not reached";
    clients_[kHonest].mark->mark[3].store(mark);
    ASSERT_TRUE(Lease(kHonest, 1).ok());
    ASSERT_EQ(Known(kHonest).leased, 4u) << "what is inside its limit is granted at once";
  }
  void ExpectSound() {
    const Status invariants = flow_->ledger().CheckInvariants();
    ASSERT_TRUE(invariants.ok()) << invariants.message();
    EXPECT_TRUE(sink_.denials[kHonest].empty());
    const scheduler::AuditReport report = scheduler::Audit(sink_.records);
    EXPECT_TRUE(report.ok()) << report.violations.front().text;
  }
};

/// Nonsense, as fast as it goes.
void Scribble(protocol::ClientPage& page, protocol::MarkPage& marks, uint32_t seed) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < 64; ++i) {
    const uint64_t any = random();
    protocol::OpRecord record = {static_cast<uint8_t>(any % 9), 0, 0, 0, any >> (any % 60)};
    protocol::StoreRecord(page.ring[(any >> 8) % protocol::kRingRecords], record);
    marks.mark[any % protocol::kStreamSlots].store(any, std::memory_order_relaxed);
    page.live_bytes.store(any, std::memory_order_relaxed);
    page.lost.store(page.lost.load() + any % 2, std::memory_order_relaxed);
    // Near enough to be believed, half of the time.
    const uint64_t head = page.head.load(std::memory_order_relaxed);
    page.head.store(any % 2 == 0 ? head + any % 4096 : any, std::memory_order_relaxed);
  }
}

TEST_F(HostilePagesTest, AThreadThatWritesNonsenseAllTheTimeDisturbsNobody) {
  std::atomic<bool> over = false;
  std::thread writer([&] {
    FakeClient& own = clients_[kHostile];
    for (uint32_t seed = 1; !over.load(); ++seed) Scribble(*own.client, *own.mark, seed);
  });
  for (uint64_t turn = 1; turn <= 400; ++turn) {
    HonestTurn(turn);
    const Extents held = flow_->ledger().map().Held(kHostile, scheduler::UnitState::kLeased);
    if (!held.empty()) {
      // Its fences may be reached at any moment, or never: its own affair.
      EXPECT_TRUE(Release(kHostile, {{held[0].offset, 1}}, {{5, 0, turn}, {9, 0, ~turn}}).ok());
    }
    if (!flow_->Find(kHostile)->answer.has_value()) {
      EXPECT_TRUE(Lease(kHostile, 2).ok());
    }
    ByteWriter kept;
    flow_->Save(&kept);
    if (HasFatalFailure()) break;
  }
  over = true;
  writer.join();
  ExpectSound();
}

// A fence is the job's own word. One that is raised before the GPU is done gives away what that job
// still writes to, never a unit of another's.
TEST_F(HostilePagesTest, AFenceRaisedEarlyFreesItsOwnUnitsAlone) {
  const Extents own = flow_->ledger().map().Held(kHostile, scheduler::UnitState::kLeased);
  ASSERT_TRUE(Release(kHonest, {{0, 2}}, {{3, 0, 9}}).ok());
  ASSERT_TRUE(Release(kHostile, {{own[0].offset, 1}}, {{3, 0, 9}}).ok());
  Pass(kMs);
  EXPECT_EQ(Known(kHostile).unfenced, 1u);
  for (auto& mark : clients_[kHostile].mark->mark) mark.store(1u << 30);
  Pass(kMs);
  EXPECT_EQ(Known(kHostile).unfenced, 0u);
  EXPECT_EQ(Known(kHonest).unfenced, 2u) << "the same slot and value, but another job's marks";
  ExpectSound();
}

// Cyclic: a mark that jumps by more than half the range is behind again.
TEST_F(HostilePagesTest, AMarkThatRunsBackHoldsUpItsOwnUnitsAlone) {
  const Extents own = flow_->ledger().map().Held(kHostile, scheduler::UnitState::kLeased);
  clients_[kHostile].mark->mark[3].store(~uint64_t{0} / 2 + 10);
  ASSERT_TRUE(Release(kHostile, {{own[0].offset, 1}}, {{3, 0, 5}}).ok());
  for (uint64_t turn = 1; turn <= 3; ++turn) HonestTurn(turn);
  EXPECT_EQ(Known(kHostile).unfenced, 1u);
  ExpectSound();
}

}  // namespace
}  // namespace sluice::flow
