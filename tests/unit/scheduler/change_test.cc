// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "scheduler/policy/operations.h"
#include "scheduler/safety/safety.h"

/// A decision is judged by what it changes. Here it is also made, on a copy of the ledger, and that
/// is judged: the plain way, which has to say the same in every state.
namespace sluice::scheduler {
namespace {

constexpr Units kPool = 40;

/// Jobs that do anything the ledger allows: I3 holds in few of these states.
class Anything {
 public:
  explicit Anything(uint32_t seed) : random_(seed), ledger_(kPool, 1, {.check_admission = false}) {
    const JobId jobs = 2 + Pick(5);
    for (JobId id = 1; id <= jobs; ++id) (void)ledger_.Admit(id, "j", 1, 6 + Pick(kPool - 6));
  }

  const Ledger& ledger() const { return ledger_; }

  void Step() {
    const Job& job = AnyJob();
    const JobId id = job.id;
    switch (Pick(9)) {
      case 0:
        (void)ledger_.StartUnprofiled(id);
        break;
      case 1:
        (void)ledger_.OpenGate(id, AnyTerms(job));
        break;
      case 2:
        (void)ledger_.Release(id, Some(ledger_.map().Held(id, UnitState::kLeased)), ++release_);
        break;
      case 3:
        (void)ledger_.Fenced(id, 1 + Pick(static_cast<Units>(release_ + 1)));
        break;
      case 4:
        (void)ledger_.ReachTrough(id, job.unfenced == 0 && Pick(2) == 0);
        break;
      case 5:
        if (Pick(8) == 0) (void)ledger_.LoseProfile(id);
        break;
      case 6:
        if (Pick(40) == 0) (void)ledger_.Die(id);
        break;
      case 7:
        (void)ledger_.SetOutside(id, Pick(4));
        break;
      default:
        (void)ledger_.Grant(id, Some(ledger_.map().FreeRuns()));
    }
  }

  /// One that a round might propose, wise or not.
  Decision AnyDecision(std::vector<Request>* requests) {
    const Job& job = AnyJob();
    const Extents spare = ledger_.map().Held(job.id, UnitState::kSpare);
    Request request;
    request.job = job.id;
    request.kind = job.phase == Phase::kWaiting  ? RequestKind::kNewcomer
                   : job.phase == Phase::kParked ? RequestKind::kGate0
                                                 : RequestKind::kGate;
    *requests = {request};
    Decision decision;
    decision.job = job.id;
    decision.terms = job.terms;
    if (job.past_gate() && !spare.empty() && Pick(3) == 0) {
      decision.kind = Decision::Kind::kReclaim;
      decision.reclaim = Some(spare);
      return decision;
    }
    decision.extents = Some(Union(ledger_.map().FreeRuns(), spare));
    if (job.past_gate()) {
      if (Pick(2) == 0) decision.reclaim = Subtract(spare, decision.extents);
      decision.raises_claim = job.terms.claim < job.limit && Pick(4) == 0;
      if (decision.raises_claim) {
        decision.terms.claim += 1 + Pick(job.limit - job.terms.claim);
        decision.terms.waived = 0;
      } else if (job.phase == Phase::kRunning) {
        decision.terms.waived = Pick(job.terms.claim + 1);
      }
    } else if (job.phase == Phase::kParked) {
      decision.terms = AnyTerms(job);
    } else {
      decision.terms = GateTerms{job.limit, kWholeClaim, false, End::kLow};
    }
    return decision;
  }

  bool Done() const {
    return std::all_of(ledger_.jobs().begin(), ledger_.jobs().end(),
                       [](const Job& job) { return job.phase == Phase::kDying; });
  }

 private:
  Units Pick(Units bound) { return static_cast<Units>(random_() % bound); }

  /// Not a dead one: nothing is decided about it.
  const Job& AnyJob() {
    for (;;) {
      const Job& job = ledger_.jobs()[Pick(static_cast<Units>(ledger_.jobs().size()))];
      if (job.phase != Phase::kDying) return job;
    }
  }

  GateTerms AnyTerms(const Job& job) {
    GateTerms terms;
    terms.claim = job.held() + Pick(job.limit - job.held() + 1);
    terms.piece = Pick(3) == 0 ? kWholeClaim : 1 + Pick(6);
    terms.returns = Pick(5) != 0;
    return terms;
  }

  Extents Some(const Extents& extents) {
    Extents some;
    for (const Extent& extent : extents) {
      if (Pick(3) == 0) continue;
      const Units skip = Pick(extent.length);
      some.push_back({extent.offset + skip, 1 + Pick(std::min<Units>(extent.length - skip, 8))});
    }
    return some;
  }

  std::mt19937 random_;
  Ledger ledger_;
  ReleaseId release_ = 0;
};

struct Seen {
  int allowed = 0;
  int refused = 0;
  int safe = 0;
  int stuck = 0;
  int worse = 0;
  int waives = 0;  // and takes and frees nothing
};

void Compare(const Ledger& ledger, const Decision& decision, const std::vector<Request>& requests,
             Seen* seen) {
  Ledger trial = ledger;
  const Status made = MakeOperations(decision, requests, &trial);
  const auto change = ChangeOf(decision, requests, ledger);
  ASSERT_EQ(change.has_value(), made.ok()) << made.message();
  ++(made.ok() ? seen->allowed : seen->refused);
  if (!change) return;
  const Prospect prospect(ledger, *change);
  for (const Measure measure : {Measure::kExtents, Measure::kSums}) {
    for (const Dying dying : {Dying::kComesBack, Dying::kMayStay}) {
      const Order plain = FindOrder(trial, measure, dying);
      const Order order = FindOrder(prospect, measure, dying);
      ASSERT_EQ(order.order, plain.order);
      ASSERT_EQ(order.stuck, plain.stuck);
      ++(plain.safe() ? seen->safe : seen->stuck);
    }
    const bool plain = NoWorse(ledger, trial, measure);
    ASSERT_EQ(NoWorse(ledger, prospect, measure), plain);
    ASSERT_EQ(IsSafeAndNoWorse(ledger, prospect, measure),
              FindOrder(trial, measure).safe() && plain);
    seen->worse += plain ? 0 : 1;
  }
  const GateTerms& before = ledger.Find(decision.job)->terms;
  const bool only_terms = change->takes.empty() && change->frees.empty();
  seen->waives += only_terms && change->terms.waived > before.waived ? 1 : 0;
}

TEST(Change, IsJudgedLikeALedgerItIsMadeOn) {
  Seen seen;
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    Anything anything(seed);
    for (int step = 0; step < 200 && !anything.Done(); ++step) {
      anything.Step();
      ASSERT_TRUE(anything.ledger().CheckInvariants().ok())
          << "seed " << seed << ": " << anything.ledger().CheckInvariants().message();
      if (anything.Done()) break;
      std::vector<Request> requests;
      const Decision decision = anything.AnyDecision(&requests);
      Compare(anything.ledger(), decision, requests, &seen);
      ASSERT_FALSE(HasFatalFailure()) << "seed " << seed << ", step " << step;
    }
  }
  for (const int count :
       {seen.allowed, seen.refused, seen.safe, seen.stuck, seen.worse, seen.waives}) {
    EXPECT_GT(count, 1000) << "the walk does not come to such states";
  }
}

TEST(Change, TellsADifferenceThatIsThere) {
  Ledger ledger(10, 1);
  for (const JobId id : {1u, 2u}) {
    ASSERT_TRUE(ledger.Admit(id, "j", 1, 9).ok());
    ASSERT_TRUE(ledger.StartUnprofiled(id).ok());
    ASSERT_TRUE(ledger.Grant(id, {{id - 1, 1}}).ok());
    ASSERT_TRUE(ledger.ReachTrough(id, true).ok());
    ASSERT_TRUE(ledger.OpenGate(id, {.claim = 7}).ok());
  }
  Change change;
  change.job = 1;
  change.terms = ledger.Find(1)->terms;
  change.returns = true;
  change.takes = {{2, 4}};
  EXPECT_TRUE(IsSafe({ledger, change})) << "2 more are free, and then it gives back 6";
  ASSERT_TRUE(ledger.Grant(2, {{7, 3}}).ok());
  EXPECT_TRUE(IsSafe(ledger));
  EXPECT_FALSE(IsSafe({ledger, change})) << "1 is free: job 1 needs 2, job 2 needs 3";
  EXPECT_FALSE(NoWorse(ledger, {ledger, change}));
}

}  // namespace
}  // namespace sluice::scheduler
