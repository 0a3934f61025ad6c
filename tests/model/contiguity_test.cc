// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>

#include "intercept/blocks/arena.h"
#include "tests/model/offline.h"
#include "tests/unit/scheduler/policy_desk.h"

// Large blocks beside another job whose lifetimes scatter its part of a pool that is nearly full:
// the clients' real arenas over the real ledger and policy, with a GPU that is done at once. How
// many requests find no run that is long enough, although there is room for twice as much?

namespace sluice::scheduler {
namespace {

constexpr uint64_t kUnitBytes = 8 << 20;
constexpr uint32_t kUnitGranules = kUnitBytes / kGranuleBytes;
constexpr uint32_t kLargeBlock = 500'000'000 / kGranuleBytes + 1;  // granules
constexpr Units kLargeUnits = (kLargeBlock + kUnitGranules - 1) / kUnitGranules;

Units UnitsOf(uint32_t granules) { return (granules + kUnitGranules - 1) / kUnitGranules; }

/// One job's side: its arena, and what it has alive.
class Tenant {
 public:
  Tenant(Desk& desk, JobId id, bool high_end) : desk_(desk), id_(id) {
    EXPECT_TRUE(arena_.Init(desk.ledger.pool_units(), kUnitGranules));
    arena_.FillFromHighEnd(high_end);
  }
  Tenant(const Tenant&) = delete;
  Tenant& operator=(const Tenant&) = delete;
  ~Tenant() { arena_.FreeMemory(); }

  enum class Outcome { kAtOnce, kWaits, kRefused };

  Outcome Allocate(uint32_t granules, uint64_t now) {
    wanted_ = granules;
    asked_at_ = now;
    if (TakeWanted()) return Outcome::kAtOnce;
    const Units units = UnitsOf(granules);
    const size_t denied = desk_.denied.size();
    desk_.Lease(id_, units, units);
    if (desk_.Waits(id_)) return Outcome::kWaits;
    if (desk_.denied.size() > denied) return Outcome::kRefused;
    Collect();
    EXPECT_TRUE(TakeWanted()) << "what was granted does not hold what it was asked for";
    return Outcome::kAtOnce;
  }
  /// A request that waited may have been answered by what somebody gave back.
  void Look() {
    if (wanted_ == 0 || desk_.Waits(id_)) return;
    Collect();
    static_cast<void>(TakeWanted());
    wanted_ = 0;
  }
  bool waiting() const { return desk_.Waits(id_); }

  void FreeOne(size_t which, uint64_t now, std::vector<OfflineBlock>* history) {
    const Live gone = live_[which % live_.size()];
    live_[which % live_.size()] = live_.back();
    live_.pop_back();
    history->push_back({arena_.block(gone.id).size, gone.since, now, 0});
    arena_.FreeSynced(gone.id);
    UnitRelease release;
    const uint64_t queued[protocol::kStreamSlots] = {};
    while (arena_.TakeFreeUnits(~0u, 0, queued, marks_, &release) > 0) {
      Extents extents;
      for (uint32_t i = 0; i < release.extents; ++i) {
        extents.push_back({release.extent[i].offset, release.extent[i].length});
      }
      std::sort(extents.begin(), extents.end(),
                [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
      desk_.Release(id_, extents);
    }
  }

  size_t blocks() const { return live_.size(); }
  uint64_t live_granules() const { return arena_.live_granules(); }

 private:
  struct Live {
    uint32_t id;
    uint64_t since;
  };

  bool TakeWanted() {
    const uint32_t id = arena_.Allocate(wanted_, kNoSlot, marks_);
    if (id == kNoBlock) return false;
    live_.push_back({id, asked_at_});
    wanted_ = 0;
    return true;
  }
  void Collect() {
    for (const Extent& extent : desk_.ledger.map().Held(id_, UnitState::kLeased)) {
      for (Units unit = extent.offset; unit < extent.end(); ++unit) {
        if (arena_.Holds(unit)) continue;
        EXPECT_TRUE(arena_.Grant({unit, 1}));
      }
    }
  }

  Desk& desk_;
  JobId id_;
  Arena arena_;
  protocol::MarkPage marks_{};
  std::vector<Live> live_;
  uint32_t wanted_ = 0;
  uint64_t asked_at_ = 0;
};

struct Counts {
  uint64_t requests = 0;
  uint64_t refused = 0;
  uint64_t delayed = 0;
  uint64_t with_room = 0;  // refused or delayed while twice the size was free
  uint64_t turns = 0;      // that it got
  uint64_t waited = 0;     // turns that it could not use, because a request of it waited
  double waiting() const { return static_cast<double>(waited) / static_cast<double>(turns); }
  double bad() const { return static_cast<double>(with_room) / static_cast<double>(requests); }
};

/// Two jobs past their gates that hold up to 45 % of the pool each: one in blocks of 500 MB, the
/// other in all sizes. What each holds at most is its claim, so nobody waits for memory that is
/// lent out: whoever waits, waits for a run.
class Scenario {
 public:
  explicit Scenario(Units pool) : pool_(pool), desk_(pool) {
    shares_[0] = pool * 45 / 100 / kLargeUnits * kLargeUnits;
    shares_[1] = pool * 9 / 10 - shares_[0];
    for (const JobId id : {1u, 2u}) {
      desk_.Admit(id, id == 1 ? "large" : "scattering", 0, shares_[id - 1]);
      desk_.Ok(desk_.ledger.StartUnprofiled(id));
      desk_.Ok(desk_.ledger.ReachTrough(id, true));
      Request gate;
      gate.kind = RequestKind::kGate0;
      gate.claim = shares_[id - 1];
      // The largest block, and one unit more (docs/design/runtime.md, section 4).
      gate.piece = 1 + (id == 1 ? kLargeUnits : UnitsOf(kSmallest << kOrders));
      desk_.Ask(id, gate);
      tenants_.push_back(
          std::make_unique<Tenant>(desk_, id, desk_.ledger.Find(id)->terms.end == End::kHigh));
    }
  }

  void Run(uint64_t large_requests) {
    next_small_ = Draw();
    while (counts[0].requests < large_requests && !testing::Test::HasFailure()) Step();
    for (auto& tenant : tenants_) {
      while (tenant->blocks() > 0) tenant->FreeOne(0, ++now_, &history_);
    }
  }

  void Print() {
    std::printf("pool of %.0f GiB, %.1f %% of it held on average\n",
                static_cast<double>(pool_ * kUnitBytes) / (1 << 30),
                100 * held_sum_ / static_cast<double>(now_));
    for (const int i : {0, 1}) {
      const Counts& count = counts[i];
      std::printf(
          "  %s: %llu requests, %llu delayed, %llu refused; %.3f %% while twice the size was free; "
          "waiting %.1f %% of its turns\n",
          i == 0 ? "500 MB" : "other sizes", static_cast<unsigned long long>(count.requests),
          static_cast<unsigned long long>(count.delayed),
          static_cast<unsigned long long>(count.refused), 100 * count.bad(), 100 * count.waiting());
    }
    const OfflineResult offline = PlaceOffline(history_);
    const auto percent = [&](uint64_t granules) {
      return 100.0 * static_cast<double>(granules) /
             static_cast<double>(uint64_t{pool_} * kUnitGranules);
    };
    std::printf(
        "  placed offline, with all lives known: %.1f %% of the pool (no placement needs less than "
        "%.1f %%)\n",
        percent(offline.footprint), percent(offline.most_alive));
  }

  Counts counts[2];

 private:
  // Sizes spread evenly over the orders of magnitude from 1 MiB to 256 MiB.
  static constexpr uint32_t kSmallest = (1 << 20) / kGranuleBytes;
  static constexpr uint32_t kOrders = 8;

  double Uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  uint32_t Draw() { return static_cast<uint32_t>(kSmallest * std::exp2(kOrders * Uniform())); }

  void Step() {
    ++now_;
    held_sum_ += 1 - static_cast<double>(desk_.ledger.free()) / pool_;
    for (auto& tenant : tenants_) tenant->Look();
    const size_t who = Uniform() < 0.3 ? 0 : 1;
    Tenant& tenant = *tenants_[who];
    ++counts[who].turns;
    if (tenant.waiting()) {
      ++counts[who].waited;
      return;
    }
    const uint32_t granules = who == 0 ? kLargeBlock : next_small_;
    if (desk_.ledger.held(static_cast<JobId>(who + 1)) + UnitsOf(granules) > shares_[who]) {
      tenant.FreeOne(random_(), now_, &history_);
      return;
    }
    const bool room = desk_.ledger.free() >= 2 * UnitsOf(granules);
    ++counts[who].requests;
    if (who == 1) next_small_ = Draw();
    const Tenant::Outcome outcome = tenant.Allocate(granules, now_);
    if (outcome == Tenant::Outcome::kAtOnce) return;
    ++(outcome == Tenant::Outcome::kWaits ? counts[who].delayed : counts[who].refused);
    counts[who].with_room += room ? 1 : 0;
  }

  Units pool_;
  Desk desk_;
  Units shares_[2];
  std::vector<std::unique_ptr<Tenant>> tenants_;
  std::mt19937_64 random_{7};
  std::vector<OfflineBlock> history_;
  uint32_t next_small_ = 0;
  uint64_t now_ = 0;
  double held_sum_ = 0;
};

uint64_t Requests() {
  const char* text = getenv("SLUICE_REQUESTS");
  return text == nullptr ? 100'000 : strtoull(text, nullptr, 10);
}

TEST(Contiguity, LargeBlocksFindRoomInAScatteredPool) {
  Scenario scenario(80ull * (1 << 30) / kUnitBytes);
  scenario.Run(Requests());
  scenario.Print();
  for (const Counts& counts : scenario.counts) {
    EXPECT_LE(counts.bad(), 0.01);
    EXPECT_LE(counts.waiting(), 0.01);
  }
}

/// Where 500 MB are a large part of the pool it is another matter: until an iteration ends, one of
/// the two waits most of the time for a run that the other one's blocks never leave. This is what
/// the counts look like when they do not hold.
TEST(Contiguity, NotInAPoolOfFewBlocks) {
  Scenario scenario(8ull * (1 << 30) / kUnitBytes);
  scenario.Run(Requests() / 10);
  scenario.Print();
  EXPECT_GT(std::max(scenario.counts[0].waiting(), scenario.counts[1].waiting()), 0.1);
}

TEST(Contiguity, OfflineKnowsTheFuture) {
  // In order of arrival the third would not fit below 3: the second stands in the middle.
  const OfflineResult result = PlaceOffline({{1, 0, 2, 0}, {1, 1, 4, 0}, {2, 3, 5, 0}});
  EXPECT_EQ(result.footprint, 3u);
  EXPECT_EQ(result.most_alive, 3u);
  // One that lives for no time takes no room, and one that begins when another ends takes its
  // place.
  EXPECT_EQ(PlaceOffline({{5, 0, 3, 0}, {5, 3, 6, 0}, {9, 2, 2, 0}}).footprint, 5u);
}

}  // namespace
}  // namespace sluice::scheduler
