// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Another limit for a job, in each state that a job can be in, beside memory outside the pool: it
// is in force when the order is answered, or nothing has changed.
#include "common/bytes.h"
#include "tests/unit/noderuntime/flow/flow_moves.h"

namespace sluice::flow {
namespace {

using protocol::Family;
using scheduler::EventKind;
using scheduler::Phase;

/// What job 1 is when it is told another limit.
enum class State {
  kRegistered,
  kRefused,
  kUnadmitted,
  kBegins,
  kBeginsWithAWish,
  kMeasured,
  kSettled,
  kAtTrough,
  kInside,
  kAsked,
  kLeaving,
  kAway,
  kReturning,
  kAwayByTurns,
  kResting,
  kDying,
};

struct Case {
  State state;
  const char* name;
  Units limit;  // that it was given before; 0: none
  Units least;  // the least that takes nothing from it; 0: it has nothing
};

constexpr Units kOutside = 4;
/// Units of its peak and of its claim, as its profile has them (FlowMovesTest).
constexpr Units kPeak = 20;
constexpr Units kClaim = 22;

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

class FlowTermsTest : public FlowMovesTest, public ::testing::WithParamInterface<Case> {
 protected:
  FlowTermsTest() { Anew(); }
  ~FlowTermsTest() override { ExpectSoundLog(); }

  Status Quiet() {
    protocol::Quiet frame = {};
    frame.header.seq = sink_.quiesced.at(1);
    frame.reason = static_cast<uint32_t>(protocol::QuietReason::kQuiet);
    return flow_->OnQuiet(1, frame, now_);
  }
  void Anew() {
    options_.outside_bytes = 40 * kUnit;
    flow_ = std::make_unique<Flow>(options_, &(sink_ = RecordingSink()));
    sink_.host = true;
  }
  void ChargeIt() { ASSERT_TRUE(Charge(1, Family::kManaged, kOutside * kUnit).ok()); }
  void BesideOneThatIsMeasured(Units limit, Units its_limit) {
    Start(2, its_limit);
    ASSERT_TRUE(Lease(2, 2).ok());
    Start(1, limit, 5);
    ASSERT_NO_FATAL_FAILURE(ChargeIt());
  }
  /// Both past their gates; job 1 has its whole claim, and 5 units are free.
  void BothInside(Units limit) {
    Start(1, limit, kBase);
    Ready(1);
    Start(2, limit, kBase);
    ToGateZero(1);
    Ready(2);
    ASSERT_EQ(Known(1).phase, Phase::kRunning);
    ASSERT_EQ(Known(2).phase, Phase::kRunning);
    ASSERT_NO_FATAL_FAILURE(ChargeIt());
  }
  /// It wants all that its limit allows: more than it was promised, and than there is.
  void Outgrows(Units limit) {
    ASSERT_TRUE(Lease(1, Known(1).terms.claim - Known(1).leased).ok());
    ASSERT_TRUE(Lease(2, flow_->ledger().free() - 5).ok());
    ASSERT_TRUE(Lease(2, Known(2).terms.claim - Known(2).leased).ok());
    ASSERT_TRUE(Lease(1, limit - kOutside - Known(1).leased).ok());
    ASSERT_EQ(flow_->Find(1)->moving, Moving::kAsked);
  }
  void Bring(const Case& one) {
    const Units limit = one.limit;
    switch (one.state) {
      case State::kRegistered:
        return;
      case State::kRefused:
        options_.context_bytes = 41 * kUnit;
        Anew();
        Start(1, limit);
        ASSERT_FALSE(flow_->Find(1)->refusal.empty());
        return;
      case State::kUnadmitted:
        ASSERT_NO_FATAL_FAILURE(BesideOneThatIsMeasured(limit, 38));
        ASSERT_EQ(flow_->ledger().Find(1), nullptr);
        return;
      case State::kBegins:
      case State::kBeginsWithAWish:
        ASSERT_NO_FATAL_FAILURE(BesideOneThatIsMeasured(limit, 30));
        if (one.state == State::kBeginsWithAWish) {
          ASSERT_TRUE(Lease(1, 8).ok());
        }
        ASSERT_EQ(Known(1).phase, Phase::kWaiting);
        return;
      case State::kMeasured:
        Start(1, limit);
        ASSERT_TRUE(Lease(1, 6).ok());
        return ChargeIt();
      case State::kSettled:
        Start(1, limit);
        ASSERT_TRUE(Lease(1, 6).ok());
        Start(2, 10);
        Pass(kMs);
        Pass(120 * kS);
        ASSERT_TRUE(Known(1).settled);
        return ChargeIt();
      case State::kAtTrough:
        Start(1, limit, kBase);
        Ready(1);
        Start(2, 30, kBase);
        ToGateZero(1);
        ASSERT_TRUE(Lease(2, 1).ok());
        ASSERT_EQ(Known(1).phase, Phase::kParked) << "job 2 is measured";
        return ChargeIt();
      case State::kInside:
        Start(1, limit, kBase);
        Ready(1);
        ASSERT_EQ(Known(1).phase, Phase::kRunning);
        ASSERT_EQ(Known(1).terms.claim, one.limit > 0 ? kClaim : Known(1).limit);
        return ChargeIt();
      case State::kAsked:
      case State::kLeaving:
      case State::kAway:
      case State::kReturning:
        ASSERT_NO_FATAL_FAILURE(BothInside(limit));
        ASSERT_NO_FATAL_FAILURE(Outgrows(limit));
        if (one.state == State::kAsked) return;
        ASSERT_TRUE(Quiet().ok());
        ASSERT_EQ(flow_->Find(1)->moving, Moving::kLeaving);
        if (one.state == State::kLeaving) return;
        flow_->OnMoved(1, Status(), now_);
        ASSERT_EQ(Known(1).phase, Phase::kEvicted);
        if (one.state == State::kAway) return;
        ToGateZero(2);
        ASSERT_EQ(flow_->Find(1)->moving, Moving::kReturning);
        return;
      case State::kAwayByTurns: {
        ASSERT_NO_FATAL_FAILURE(BothInside(limit));
        Way way = flow_->way();
        way.residents = 1;
        ASSERT_TRUE(flow_->SetWay(way, now_).ok());
        ToGateZero(1);
        ASSERT_TRUE(Quiet().ok());
        flow_->OnMoved(1, Status(), now_);
        ASSERT_EQ(Known(1).phase, Phase::kEvicted);
        return;
      }
      case State::kResting:
        Start(1, limit);
        ASSERT_NO_FATAL_FAILURE(ChargeIt());
        ASSERT_TRUE(flow_->Die(1, now_, /*parted=*/true));
        ASSERT_TRUE(flow_->Rests(1));
        return;
      case State::kDying:
        Start(1, limit);
        ASSERT_TRUE(Lease(1, 6).ok());
        ASSERT_NO_FATAL_FAILURE(ChargeIt());
        ASSERT_TRUE(flow_->Die(1, now_));
        ASSERT_EQ(Known(1).phase, Phase::kDying);
        return;
    }
  }

  std::string Saved() {
    ByteWriter out;
    flow_->Save(&out);
    return {reinterpret_cast<const char*>(out.bytes().data()), out.bytes().size()};
  }
  void Sound() {
    const Status sound = flow_->ledger().CheckInvariants();
    EXPECT_TRUE(sound.ok()) << sound.message();
  }
  /// The session's limit, and the ledger's where that counts.
  void ExpectInForce(Units limit) {
    Sound();
    const FlowJob* job = flow_->Find(1);
    if (job == nullptr) return;
    EXPECT_EQ(job->spec.limit, limit);
    const scheduler::Job* known = flow_->ledger().Find(1);
    if (known == nullptr) return;
    EXPECT_EQ(known->limit, limit);
    EXPECT_EQ(known->outside, kOutside);
    EXPECT_LE(known->request, limit);
    // One that has not begun is told when it does.
    if (known->phase != Phase::kWaiting) {
      EXPECT_EQ(clients_[1].daemon->limit_units.load(), limit);
    }
  }
  /// All that the job can still do with what it has outside the pool, a restart, and its end.
  void LiveOn(Units limit) {
    const bool session = flow_->Find(1) != nullptr;
    if (session || flow_->Rests(1)) {
      for (const uint64_t bytes : {uint64_t{1}, kUnit - 1, kUnit}) {
        if (flow_->outside().charged(1) < bytes) continue;
        ASSERT_TRUE(Uncharge(1, Family::kManaged, bytes).ok());
        Sound();
      }
    }
    if (!session && flow_->Rests(1)) {
      Start(1, limit);
      Sound();
      ASSERT_NE(flow_->ledger().Find(1), nullptr);
      EXPECT_EQ(Known(1).limit, limit);
      EXPECT_EQ(Known(1).outside, 2u);
    }
    Pass(kS);
    Sound();
    ExpectSoundLog();
    ASSERT_NO_FATAL_FAILURE(DaemonDies());
    if (flow_->Find(1) != nullptr) {
      EXPECT_EQ(flow_->Find(1)->spec.limit, limit);
      flow_->Die(1, now_);
    }
    flow_->Thaw(now_);
    flow_->HolderGone(1, now_);
    Pass(kS);
    Sound();
    EXPECT_EQ(flow_->ledger().Find(1), nullptr);
    EXPECT_EQ(flow_->outside().charged(1), 0u);
  }
  void DaemonDies() {
    ByteWriter out;
    flow_->Save(&out);
    std::map<JobId, JobPages> pages;
    for (auto& [id, client] : clients_) {
      if (flow_->Find(id) != nullptr) pages[id] = client.pages();
    }
    sink_ = RecordingSink();
    sink_.host = true;
    ByteReader in(out.bytes());
    Result<std::unique_ptr<Flow>> restored = Flow::Restore(options_, &sink_, &in, pages, now_);
    ASSERT_TRUE(restored.ok()) << restored.status().message();
    flow_ = std::move(*restored);
  }
};

TEST_P(FlowTermsTest, BelowTheLeastIsRefusedAndNothingHasChanged) {
  const Case& one = GetParam();
  ASSERT_NO_FATAL_FAILURE(Bring(one));
  if (one.least < 2) return;
  for (const Units limit : {Units{1}, one.least - 1}) {
    const std::string before = Saved();
    const scheduler::Ledger ledger = flow_->ledger();
    const size_t records = sink_.records.size();
    const size_t said = sink_.order.size();
    const Status set = flow_->SetTerms(1, limit, 7);
    EXPECT_EQ(set.code(), StatusCode::kFailedPrecondition) << set.message();
    EXPECT_NE(set.message().find("; allowed: from " + FormatBytes(one.least * kUnit)),
              std::string::npos)
        << set.message();
    EXPECT_NE(set.message().find("limit " + FormatBytes(limit * kUnit) + ": job 1 'job1'"),
              std::string::npos)
        << set.message();
    EXPECT_EQ(Saved(), before);
    EXPECT_EQ(flow_->ledger(), ledger);
    EXPECT_EQ(sink_.records.size(), records);
    EXPECT_EQ(sink_.order.size(), said);
    if (flow_->Find(1) != nullptr) {
      EXPECT_EQ(flow_->Find(1)->spec.priority, 0);
    }
  }
  // As before the orders.
  if (one.limit > 0) LiveOn(one.limit);
}

TEST_P(FlowTermsTest, DownToTheLeastItIsInForceAtOnce) {
  const Case& one = GetParam();
  ASSERT_NO_FATAL_FAILURE(Bring(one));
  const Units least = std::max<Units>(1, one.least);
  const Status set = flow_->SetTerms(1, least, 7);
  ASSERT_TRUE(set.ok()) << set.message();
  ExpectInForce(least);
  if (flow_->Find(1) != nullptr) {
    EXPECT_EQ(flow_->Find(1)->spec.priority, 7);
  }
  LiveOn(least);
}

TEST_P(FlowTermsTest, RaisedAndLoweredAgainItIsInForceAtOnce) {
  const Case& one = GetParam();
  ASSERT_NO_FATAL_FAILURE(Bring(one));
  const Units high = std::max(one.limit, one.least) + 1;
  std::vector<Units> limits = {high, high - 1, high};
  // Whose limit was full counts on all of a higher one.
  if (one.limit == one.least) limits = {high};
  for (const Units limit : limits) {
    const Status set = flow_->SetTerms(1, limit, 0);
    ASSERT_TRUE(set.ok()) << limit << ": " << set.message();
    ExpectInForce(limit);
  }
  LiveOn(high);
}

/// More than there can be beside the others: refused, and nothing has changed.
TEST_P(FlowTermsTest, MoreThanTheBudgetIsRefused) {
  const Case& one = GetParam();
  ASSERT_NO_FATAL_FAILURE(Bring(one));
  // Of one that is not there it is asked when it begins.
  if (flow_->Find(1) == nullptr || one.state == State::kRefused) return;
  const std::string before = Saved();
  const Status set = flow_->SetTerms(1, 41, 7);
  EXPECT_EQ(set.code(), StatusCode::kResourceExhausted) << set.message();
  EXPECT_NE(set.message().find("the budget is 40.0 MiB; allowed: up to that"), std::string::npos)
      << set.message();
  EXPECT_EQ(Saved(), before);
}

INSTANTIATE_TEST_SUITE_P(
    EveryState, FlowTermsTest,
    ::testing::Values(Case{State::kRegistered, "Registered", 20, 0},
                      Case{State::kRefused, "Refused", 20, 0},
                      Case{State::kUnadmitted, "Unadmitted", 20, kOutside},
                      Case{State::kUnadmitted, "UnadmittedWithoutALimit", 0, kOutside},
                      Case{State::kBegins, "Begins", 20, kOutside},
                      Case{State::kBegins, "BeginsWithoutALimit", 0, kOutside},
                      Case{State::kBeginsWithAWish, "BeginsWithAWish", 20, 8 + kOutside},
                      Case{State::kMeasured, "Measured", 20, 6 + kOutside},
                      Case{State::kMeasured, "MeasuredWithoutALimit", 0, 6 + kOutside},
                      Case{State::kSettled, "Settled", 20, 6 + kOutside},
                      Case{State::kSettled, "SettledWithoutALimit", 0, 6 + kOutside},
                      Case{State::kAtTrough, "AtTrough", 30, kPeak + kOutside},
                      Case{State::kAtTrough, "AtTroughWithoutALimit", 0, kPeak + kOutside},
                      // With its limit full, it counts on no more than what is left of it.
                      Case{State::kAtTrough, "AtTroughInATightLimit", 20, 20},
                      Case{State::kInside, "Inside", 30, kClaim + kOutside},
                      Case{State::kInside, "InsideWithoutALimit", 0, kPeak + kOutside},
                      Case{State::kAsked, "Asked", 34, kClaim + kOutside},
                      Case{State::kLeaving, "Leaving", 34, kClaim + kOutside},
                      Case{State::kAway, "Away", 34, kClaim + kOutside},
                      // With a claim for what it wants.
                      Case{State::kReturning, "Returning", 34, 30 + kOutside},
                      Case{State::kAwayByTurns, "AwayByTurns", 30, kPeak + kOutside},
                      Case{State::kResting, "Resting", 20, kOutside},
                      Case{State::kResting, "RestingWithoutALimit", 0, kOutside},
                      Case{State::kDying, "Dying", 20, 0}),
    [](const auto& one) { return one.param.name; });

class FlowOrdersTest : public FlowTest {
 protected:
  FlowOrdersTest() { Anew(); }
  void Anew() {
    options_.outside_bytes = 20 * kUnit;
    flow_ = std::make_unique<Flow>(options_, &(sink_ = RecordingSink()));
  }
  ~FlowOrdersTest() override {
    for (const auto& violation : scheduler::Audit(sink_.records).violations) {
      ADD_FAILURE() << violation.rule << ": " << violation.text;
    }
    EXPECT_TRUE(flow_->ledger().CheckInvariants().ok());
  }
};

/// The flow shrank the limit that nobody gave; what the job has outside was no part of that.
TEST_F(FlowOrdersTest, ALimitCountsWhatWasOutsideBeforeItWasGiven) {
  Start(1);
  ASSERT_TRUE(Lease(1, 4).ok());
  ASSERT_TRUE(Charge(1, Family::kManaged, 12 * kUnit).ok());
  EXPECT_EQ(flow_->SetTerms(1, 5, 0).message(),
            "limit 5.0 MiB: job 1 'job1' holds 4.0 MiB and has 12.0 MiB outside the pool; allowed: "
            "from 16.0 MiB");
  ASSERT_TRUE(Uncharge(1, Family::kManaged, 1).ok());
  ASSERT_TRUE(flow_->SetTerms(1, 16, 0).ok());
  EXPECT_EQ(Known(1).outside, 12u);
  ASSERT_TRUE(Lease(1, 1).ok());
  EXPECT_EQ(sink_.denials[1].size(), 1u) << "it counts from now on";
  ASSERT_TRUE(Uncharge(1, Family::kManaged, kUnit).ok());
  EXPECT_EQ(Known(1).outside, 11u);
  ASSERT_TRUE(flow_->SetTerms(1, 0, 0).ok());
  EXPECT_EQ(Known(1).outside, 0u) << "nobody gives it one any more";
}

/// Who was given a limit while it waits has no part in what others without one give up.
TEST_F(FlowOrdersTest, WhoWasGivenALimitWhileItWaitsDoesNotYield) {
  Start(1, 10);
  ASSERT_TRUE(Lease(1, 2).ok());
  Start(2);
  ASSERT_EQ(Known(2).phase, Phase::kWaiting);
  ASSERT_EQ(Known(2).limit, 40u);
  ASSERT_TRUE(flow_->SetTerms(2, 30, 0).ok());
  EXPECT_EQ(Known(2).limit, 30u);
  Start(3, 20, 15);
  EXPECT_EQ(Known(2).limit, 30u);
  EXPECT_EQ(flow_->ledger().Find(3), nullptr) << "its request has no room beside that";
  flow_->Die(1, now_);
  flow_->HolderGone(1, now_);
  Pass(kS);
  ASSERT_TRUE(Lease(2, 31).ok());
  ASSERT_EQ(sink_.denials[2].size(), 1u);
  EXPECT_NE(sink_.denials[2][0].second.find("its limit is 30.0 MiB"), std::string::npos);
}

/// A limit that keeps a job from being admitted, and one that lets it in at once.
TEST_F(FlowOrdersTest, AnOtherLimitAdmitsWhoWaitsForRoom) {
  Start(1, 10, 10);
  Start(2, 35, 5);
  ASSERT_EQ(flow_->ledger().Find(2), nullptr);
  ASSERT_TRUE(flow_->SetTerms(2, 30, 0).ok());
  ASSERT_NE(flow_->ledger().Find(2), nullptr) << "before the order is answered";
  EXPECT_EQ(Known(2).limit, 30u);
  EXPECT_EQ(flow_->SetTerms(2, 31, 0).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(flow_->Find(2)->spec.limit, 30u);
}

/// All of it is reserved: one that gives nothing back, and everybody's where nobody takes turns.
TEST_F(FlowOrdersTest, WhatIsReservedFollowsTheLimit) {
  options_.policy.policy = "spatial";
  Anew();
  Start(1, 20);
  Start(2, 15);
  ASSERT_TRUE(Lease(1, 2).ok());
  Pass(kS);
  Pass(kS);
  ASSERT_TRUE(Known(1).settled && Known(2).settled);
  EXPECT_EQ(flow_->SetTerms(1, 26, 0).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(flow_->SetTerms(1, 0, 0).code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(flow_->SetTerms(1, 25, 0).ok());
  EXPECT_EQ(Known(1).request, 25u);
  EXPECT_EQ(flow_->SetTerms(2, 16, 0).code(), StatusCode::kResourceExhausted)
      << "job 1's limit is reserved";
  ASSERT_TRUE(flow_->SetTerms(1, 10, 0).ok());
  EXPECT_EQ(Known(1).request, 10u);
  ASSERT_TRUE(flow_->SetTerms(2, 30, 0).ok());
  EXPECT_EQ(Known(2).request, 30u);
}

/// It was registered without a limit, and then everybody's was to be reserved.
TEST_F(FlowOrdersTest, WhereLimitsAreReservedNobodyBeginsWithoutOne) {
  Start(1, 10);
  ASSERT_TRUE(flow_->SetWay({"spatial"}, now_).ok());
  Start(2);
  Pass(kS);
  EXPECT_NE(flow_->Find(2)->refusal.find("limit: policy spatial reserves it"), std::string::npos)
      << flow_->Find(2)->refusal;
  EXPECT_EQ(flow_->ledger().Find(2), nullptr);
}

/// Its profile went while it stood at its gate, so it asks for all that it may ever hold: of the
/// limit that it has when the gate opens.
TEST_F(FlowOrdersTest, AGateOpensUnderTheLimitOfThen) {
  for (const Units limit : {Units{12}, Units{36}}) {
    Anew();
    clients_.clear();
    Start(1, 30, 2);
    ASSERT_TRUE(Lease(1, 10).ok());
    clients_[1].Push(protocol::OpKind::kAlloc, 2 * kUnit);
    ASSERT_NE(Measure(1, 8), 0u);
    Start(2, 30, 2);
    ASSERT_TRUE(Release(1, {{2, 8}}).ok());
    ASSERT_TRUE(Gate(1, 0, clients_[1].profile(), 1).ok());
    ASSERT_TRUE(Lease(2, 2).ok());
    ASSERT_EQ(Known(1).phase, Phase::kParked);
    protocol::Mismatch mismatch = {};
    mismatch.profile = clients_[1].profile();
    ASSERT_TRUE(flow_->OnMismatch(1, mismatch, now_).ok());
    const size_t answers = sink_.grants[1].size();
    ASSERT_TRUE(flow_->SetTerms(1, limit, 0).ok());
    flow_->Die(2, now_);
    flow_->HolderGone(2, now_);
    Pass(kS);
    EXPECT_TRUE(sink_.denials[1].empty()) << sink_.denials[1][0].second;
    ASSERT_EQ(sink_.grants[1].size(), answers + 1);
    EXPECT_EQ(Known(1).terms.claim, limit);
  }
}

/// Whatever a session begins with: what is outside its limit is no reason to end the daemon.
TEST_F(FlowOrdersTest, WhoHasMoreOutsideThanItsLimitIsRefused) {
  Start(1, 20);
  ASSERT_TRUE(Charge(1, Family::kPhysical, 4 * kUnit).ok());
  ASSERT_TRUE(flow_->Die(1, now_, /*parted=*/true));
  Start(1, 3);
  EXPECT_EQ(flow_->ledger().Find(1), nullptr);
  Pass(kS);
  EXPECT_NE(flow_->Find(1)->refusal.find("would have 4.0 MiB outside the pool"), std::string::npos)
      << flow_->Find(1)->refusal;
  ASSERT_TRUE(Uncharge(1, Family::kPhysical, 4 * kUnit).ok());
  EXPECT_FALSE(flow_->Die(1, now_, /*parted=*/true));
}

TEST_F(FlowOrdersTest, WhoWaitsToBeAdmittedKeepsRoomForWhatItHasOutside) {
  Start(1, 38);
  ASSERT_TRUE(Lease(1, 30).ok());
  Start(2, 12, 5);
  ASSERT_TRUE(Charge(2, Family::kArray, 6 * kUnit).ok());
  EXPECT_EQ(flow_->SetTerms(2, 5, 0).message(),
            "limit 5.0 MiB: job 2 'job2' has 6.0 MiB outside the pool; allowed: from 6.0 MiB");
  ASSERT_TRUE(flow_->SetTerms(2, 6, 0).ok());
  flow_->Die(1, now_);
  flow_->HolderGone(1, now_);
  Pass(kMs);
  ASSERT_NE(flow_->ledger().Find(2), nullptr);
  EXPECT_EQ(Known(2).limit, 6u);
  EXPECT_EQ(Known(2).outside, 6u);
}

TEST_F(FlowOrdersTest, PriorityAloneChangesNothingElse) {
  Start(1, 10);
  ASSERT_TRUE(Lease(1, 2).ok());
  const scheduler::Ledger before = flow_->ledger();
  const size_t records = sink_.records.size();
  ASSERT_TRUE(flow_->SetTerms(1, 10, 5).ok());
  EXPECT_EQ(flow_->ledger(), before);
  EXPECT_EQ(sink_.records.size(), records);
  EXPECT_EQ(flow_->Find(1)->spec.priority, 5);
}

}  // namespace
}  // namespace sluice::flow
