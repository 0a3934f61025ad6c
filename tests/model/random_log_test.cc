// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "scheduler/audit/audit.h"
#include "tests/model/loans_check.h"
#include "tests/unit/scheduler/policy_desk.h"

/// Larger pools than the exhaustive search can walk: random jobs with made-up iterations over the
/// real ledger and policy. The log they leave is replayed by the audit, which shares no code with
/// either.
namespace sluice::scheduler {
namespace {

struct RandomJob {
  Units claim = 0;
  Units piece = 0;
  Units wanted = 0;
  int steps_left = 0;
  int iterations = 0;
};

enum class Manner { kConforms, kGrows, kUnknown, kInsured };

class RandomRun {
 public:
  RandomRun(uint32_t seed, const std::string& policy, Manner manner)
      : random_(seed), manner_(manner), desk_(kPool, Config{policy, 2 + seed % 2, 4}) {
    const JobId jobs = 2 + Pick(3);
    const Units base = 2 + Pick(4);
    const Units limit = kPool - (jobs - 1) * base;
    for (JobId id = 1; id <= jobs; ++id) {
      // Where profiles come and go, two of the jobs also begin without one.
      if (manner == Manner::kUnknown && id <= 2) {
        desk_.Admit(id, "j", base, limit);
      } else {
        desk_.Parked(id, "j", base, limit, {(id - 1) * base, base});
      }
      RandomJob& job = jobs_[id];
      const Units less = Grows() ? 4 : 0;
      job.claim = std::max<Units>(base + 1, limit / 2 + Pick(limit / 2) - less);
      job.piece = Pick(2) == 0 ? kWholeClaim : 1 + Pick(6);
    }
  }

  void Run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFatalFailure(); ++step) {
      const JobId id = 1 + Pick(static_cast<Units>(jobs_.size()));
      if (!desk_.Waits(id)) Act(id);
      if (desk_.Leaves(id) && Pick(3) == 0) {
        ++evictions_;
        desk_.Copied(id);
      }
    }
  }

  Desk& desk() { return desk_; }
  const std::map<JobId, RandomJob>& jobs() const { return jobs_; }
  int losses() const { return losses_; }
  int evictions() const { return evictions_; }

 private:
  static constexpr Units kPool = 48;

  bool Grows() const { return manner_ == Manner::kGrows || manner_ == Manner::kInsured; }

  Units Pick(Units bound) { return bound == 0 ? 0 : static_cast<Units>(random_() % bound); }

  void Act(JobId id) {
    RandomJob& job = jobs_[id];
    const Job& known = *desk_.ledger.Find(id);
    if (known.phase == Phase::kWaiting) {
      job.steps_left = 4 + static_cast<int>(Pick(12));
      desk_.Newcomer(id);
    } else if (known.phase == Phase::kParked) {
      job.steps_left = 4 + static_cast<int>(Pick(12));
      Request request;
      request.kind = RequestKind::kGate0;
      request.claim = job.claim;
      request.piece = job.piece;
      request.units = Pick(std::min<Units>(4, job.claim - known.held() + 1));
      request.contiguous = std::min(request.units, job.piece);
      desk_.Ask(id, request);
    } else if (job.steps_left-- <= 0) {
      ++job.iterations;
      desk_.Trough(id);
    } else if (manner_ == Manner::kUnknown && known.phase == Phase::kRunning && Pick(20) == 0) {
      ++losses_;
      desk_.LoseProfile(id);
    } else if (Pick(2) == 0) {
      const Units bound = Grows() && Pick(6) == 0 ? known.limit : known.terms.claim;
      const Units room = bound - std::min(bound, known.leased);
      if (room == 0) return;
      const Units units = 1 + Pick(std::min<Units>(room, 8));
      if (manner_ == Manner::kInsured) return desk_.InsuredLease(id, units);
      desk_.Lease(id, units, 1 + Pick(std::min(units, job.piece)));
    } else {
      const Extents loose = Subtract(desk_.ledger.map().Held(id, UnitState::kLeased), known.base);
      if (loose.empty()) return;
      const Extent& extent = loose[Pick(static_cast<Units>(loose.size()))];
      const Units skip = Pick(extent.length);
      desk_.Release(id, {{extent.offset + skip, 1 + Pick(extent.length - skip)}});
    }
  }

  std::mt19937 random_;
  Manner manner_;
  int losses_ = 0;
  int evictions_ = 0;
  Desk desk_;
  std::map<JobId, RandomJob> jobs_;
};

void Check(RandomRun& run, uint32_t seed, uint64_t* lent) {
  const AuditReport report = Audit(run.desk().records);
  ExpectLoansOf(run.desk().records, report);
  for (const AuditViolation& violation : report.violations) {
    ADD_FAILURE() << "seed " << seed << ", record " << violation.record << ": " << violation.rule
                  << " " << violation.text;
  }
  EXPECT_TRUE(report.ok()) << "seed " << seed;
  EXPECT_EQ(report.broken_promises, 0u) << "seed " << seed;
  for (const auto& [id, job] : run.jobs()) {
    EXPECT_GT(job.iterations, 10) << "seed " << seed << ": job " << id << " starves";
  }
  *lent += report.lent_bytes_within_iterations;
}

TEST(RandomLogs, ConformingJobsPassTheAudit) {
  uint64_t lent = 0;
  size_t records = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    RandomRun run(seed, "flow", Manner::kConforms);
    run.Run(3000);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
    Check(run, seed, &lent);
    records += run.desk().records.size();
  }
  std::printf("%zu records, %llu MiB lent within iterations\n", records,
              static_cast<unsigned long long>(lent >> 20));
  EXPECT_GT(lent, 0u);
}

TEST(RandomLogs, NothingIsLentUnderTemporal) {
  uint64_t lent = 0;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    RandomRun run(seed, "temporal", Manner::kConforms);
    run.Run(3000);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
    Check(run, seed, &lent);
  }
  EXPECT_EQ(lent, 0u);
}

TEST(RandomLogs, GrowersHarmNobodysInvariants) {
  uint64_t lent = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    RandomRun run(seed, "flow", Manner::kGrows);
    run.Run(3000);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
    Check(run, seed, &lent);
  }
}

/// Evicted and brought back: the log says that each came back to its own units, that nobody was
/// evicted inside its claim, and that the others had what they were promised.
TEST(RandomLogs, EvictedGrowersHarmNobodysInvariants) {
  uint64_t lent = 0;
  int evictions = 0;
  size_t denied = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    RandomRun run(seed, "flow", Manner::kInsured);
    run.Run(3000);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
    Check(run, seed, &lent);
    evictions += run.evictions();
    denied += run.desk().denied.size();
  }
  std::printf("%d evictions, %zu denied\n", evictions, denied);
  EXPECT_GT(evictions, 50);
}

/// Promises break with a profile; no decision may be wrong for it, and none opens a gate beside a
/// job that is measured.
TEST(RandomLogs, JobsThatAreMeasuredHarmNobodysInvariants) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    RandomRun run(seed, seed % 4 == 0 ? "temporal" : "flow", Manner::kUnknown);
    run.Run(3000);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
    const AuditReport report = Audit(run.desk().records);
    ExpectLoansOf(run.desk().records, report);
    for (const AuditViolation& violation : report.violations) {
      ADD_FAILURE() << "seed " << seed << ", record " << violation.record << ": " << violation.rule
                    << " " << violation.text;
    }
    EXPECT_TRUE(report.ok()) << "seed " << seed;
    EXPECT_GT(run.losses(), 10) << "seed " << seed;
  }
}

}  // namespace
}  // namespace sluice::scheduler
