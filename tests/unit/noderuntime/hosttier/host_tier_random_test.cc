// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Random sequences of what a daemon may do with several jobs, against a model that knows where each
// job's bytes are and what they must be.
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <random>

#include "noderuntime/hosttier/host_tier.h"
#include "tests/support/fake_gpu.h"

namespace sluice::hosttier {
namespace {

using Place = HostTier::Place;

constexpr uint64_t kUnit = 16;
constexpr uint64_t kPoolUnits = 96;
constexpr JobId kJobs = 5;
constexpr int kSteps = 400;

struct ModelJob {
  Extents extents;
  std::vector<std::byte> bytes;  // of its extents, one behind the other
  Place place = Place::kNone;
};

class World {
 public:
  World(unsigned seed, uint64_t capacity_bytes)
      : random_(seed), tier_(std::in_place, &device_, kUnit, capacity_bytes) {
    device_.holds_copies = true;
    for (scheduler::Units unit = 0; unit < kPoolUnits; ++unit) {
      const size_t job = Below(kJobs + 1);
      if (job == kJobs) continue;
      Extents& extents = jobs_[job].extents;
      if (!extents.empty() && extents.back().end() == unit) {
        ++extents.back().length;
      } else {
        extents.push_back({unit, 1});
      }
    }
    for (ModelJob& job : jobs_) Fill(&job);
  }

  void Step() {
    const auto id = static_cast<JobId>(Below(kJobs));
    ModelJob& job = jobs_[id];
    if (job.extents.empty()) return;
    switch (Below(6)) {
      case 0:
        Evict(id, &job);
        break;
      case 1:
        Restore(id, &job);
        break;
      case 2:
        if (Below(3) != 0) break;
        tier_->Forget(id);
        job.place = Place::kNone;
        Fill(&job);  // its units are somebody else's: any byte that still comes shows
        break;
      case 3:
        if (job.place == Place::kAway) Scribble(job);
        break;
      default:
        EndOne();
        break;
    }
    Check();
  }

  void End() {
    tier_.reset();
    EXPECT_EQ(device_.host_bytes(), 0u);
    EXPECT_EQ(device_.under_way(), 0u);
    EXPECT_EQ(device_.violations(), 0);
  }
  int returned() const { return returned_; }
  int refused() const { return refused_; }

 private:
  size_t Below(size_t bound) { return random_() % bound; }

  void Evict(JobId id, ModelJob* job) {
    const uint64_t bytes = job->bytes.size();
    const bool fits = tier_->HasRoom(bytes);
    const Status status = tier_->Evict(id, job->extents);
    if (job->place != Place::kNone) {
      EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    } else {
      EXPECT_EQ(status.ok(), fits) << status.message();
      if (status.ok()) job->place = Place::kLeaving;
      refused_ += fits ? 0 : 1;
    }
  }

  void Restore(JobId id, ModelJob* job) {
    const bool fails = job->place == Place::kAway && Below(5) == 0;
    if (fails) device_.next_start = Status(StatusCode::kInternal, "not now");
    const Status status = tier_->Restore(id);
    EXPECT_EQ(status.ok(), job->place == Place::kAway && !fails);
    if (status.ok()) job->place = Place::kReturning;
  }

  void EndOne() {
    const bool any = device_.under_way() > 0;
    const bool fails = Below(4) == 0;
    device_.EndOldest(fails ? Status(StatusCode::kInternal, "broken") : Status());
    const std::vector<HostTier::Finished> finished = tier_->Poll();
    ASSERT_EQ(finished.size(), any ? 1u : 0u);
    if (!any) return;
    ModelJob& job = jobs_[finished[0].job];
    EXPECT_EQ(finished[0].was, job.place);
    EXPECT_EQ(finished[0].status.ok(), !fails);
    const bool away = (job.place == Place::kLeaving) != fails;
    if (!away && job.place == Place::kReturning) ++returned_;
    job.place = away ? Place::kAway : Place::kNone;
  }

  void Check() {
    uint64_t used = 0;
    bool busy = false;
    for (JobId id = 0; id < kJobs; ++id) {
      const ModelJob& job = jobs_[id];
      ASSERT_EQ(tier_->Where(id), job.place);
      if (job.place != Place::kNone) used += job.bytes.size();
      busy = busy || job.place == Place::kLeaving || job.place == Place::kReturning;
      if (job.place != Place::kNone && job.place != Place::kLeaving) continue;
      ASSERT_EQ(Bytes(job.extents), job.bytes) << "job " << id;
    }
    EXPECT_EQ(tier_->busy(), busy);
    EXPECT_GE(tier_->used_bytes(), used);
    EXPECT_LE(tier_->used_bytes(), tier_->capacity_bytes());
    EXPECT_LE(device_.host_bytes(), tier_->capacity_bytes());
    if (used == 0) {
      EXPECT_EQ(tier_->used_bytes(), 0u);
    }
  }

  template <typename Visit>
  void EachByte(const Extents& extents, Visit visit) {
    for (const scheduler::Extent& extent : extents) {
      for (uint64_t at = extent.offset * kUnit; at < extent.end() * kUnit; ++at) {
        visit(&device_.pool[at]);
      }
    }
  }
  std::vector<std::byte> Bytes(const Extents& extents) {
    std::vector<std::byte> bytes;
    EachByte(extents, [&](std::byte* byte) { bytes.push_back(*byte); });
    return bytes;
  }
  void Scribble(const ModelJob& job) {
    EachByte(job.extents, [&](std::byte* byte) { *byte = static_cast<std::byte>(random_()); });
  }
  void Fill(ModelJob* job) {
    Scribble(*job);
    job->bytes = Bytes(job->extents);
  }

  std::mt19937 random_;
  testing::FakeGpu device_{kPoolUnits * kUnit};
  std::optional<HostTier> tier_;
  std::array<ModelJob, kJobs> jobs_;
  int returned_ = 0;
  int refused_ = 0;
};

TEST(HostTierRandom, NoSequenceLosesAByte) {
  int returned = 0;
  int refused = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    // Room for about two of the five, in pieces of one to three units.
    World world(seed, seed % 3 == 0 ? 64 * 3 * kUnit : (30 + seed % 20) * kUnit);
    for (int step = 0; step < kSteps && !::testing::Test::HasFailure(); ++step) world.Step();
    world.End();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
    returned += world.returned();
    refused += world.refused();
  }
  EXPECT_GT(returned, 500) << "the sequences hardly ever go all the way";
  EXPECT_GT(refused, 100) << "the sequences hardly ever run out of room";
}

}  // namespace
}  // namespace sluice::hosttier
