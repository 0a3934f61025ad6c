// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Other limits for jobs that are there, by an order and by a pod's terms.
#include "common/grant/store.h"
#include "common/nvml.h"
#include "tests/unit/noderuntime/daemon/daemon_fixture.h"

namespace sluice::noded {
namespace {

using flow::Units;

/// Managed memory, for which there is room beside the pool.
template <typename Frame>
void Managed(const ScriptedClient& client, uint64_t bytes, FrameType type) {
  Frame frame = {};
  frame.family = static_cast<uint32_t>(protocol::Family::kManaged);
  frame.bytes = bytes;
  client.Send(frame, type, 1);
}

// It had no limit, so what it has outside the pool counted against none.
TEST_F(DaemonTest, ALimitBelowWhatAJobHasOnBothSidesIsRefused) {
  Up();
  ScriptedClient launcher = Launcher();
  ScriptedClient client = Open(Register(launcher).path);
  client.Lease(4, 1);
  ASSERT_TRUE(Await(client).has_value());
  Managed<protocol::Charge>(client, 12 * kUnit, FrameType::kCharge);
  const auto answer = Await(client);
  ASSERT_TRUE(answer.has_value() && answer->type() == FrameType::kCharged);
  const protocol::LimitSet refused = SetLimit(1, 5 * kUnit);
  EXPECT_EQ(refused.status, 1u);
  EXPECT_EQ(std::string(refused.text),
            "limit 20.0 KiB: job 1 'a job' holds 16.0 KiB and has 48.0 KiB outside the pool; "
            "allowed: from 64.0 KiB");
  EXPECT_EQ(refused.bytes, 0u);
  EXPECT_EQ(Status()["jobs"][0]["limit_bytes"], 32 * kUnit) << "as before";
  Managed<protocol::Uncharge>(client, kUnit, FrameType::kUncharge);
  EXPECT_TRUE(Until([&] { return daemon_->flow().outside().charged(1) == 11 * kUnit; }));
  EXPECT_EQ(SetLimit(1, 15 * kUnit).status, 0u);
  Managed<protocol::Uncharge>(client, 2 * kUnit, FrameType::kUncharge);
  EXPECT_TRUE(Until([&] { return daemon_->flow().ledger().Find(1)->outside == 9; }));
  EXPECT_TRUE(daemon_->flow().ledger().CheckInvariants().ok());
}

TEST_F(DaemonTest, ALimitOfWhoWaitsHoldsWhenItIsAnswered) {
  Up();
  ScriptedClient first = Launcher();
  ScriptedClient measured = Open(Register(first, 20 * kUnit).path);
  measured.Lease(1, 1);
  ASSERT_TRUE(Await(measured).has_value());
  // One that may begin when job 1 is known, and one for which there is no room beside them.
  ScriptedClient second = Launcher();
  ScriptedClient begins = Open(Register(second, 30 * kUnit, 2 * kUnit).path);
  ScriptedClient third = Launcher();
  ScriptedClient waits = Open(Register(third, 16 * kUnit, 12 * kUnit).path);
  Managed<protocol::Charge>(waits, 13 * kUnit, FrameType::kCharge);
  const auto answer = Await(waits);
  ASSERT_TRUE(answer.has_value() && answer->type() == FrameType::kCharged);
  const auto& ledger = daemon_->flow().ledger();
  ASSERT_NE(ledger.Find(2), nullptr);
  EXPECT_EQ(ledger.Find(2)->phase, scheduler::Phase::kWaiting);
  ASSERT_EQ(ledger.Find(3), nullptr);

  EXPECT_EQ(SetLimit(2, 18 * kUnit).status, 0u);
  EXPECT_EQ(ledger.Find(2)->limit, 18u);
  const protocol::LimitSet refused = SetLimit(3, 12 * kUnit);
  EXPECT_EQ(refused.status, 1u);
  EXPECT_NE(std::string(refused.text).find("has 52.0 KiB outside the pool"), std::string::npos)
      << refused.text;
  EXPECT_EQ(refused.bytes, 16 * kUnit);
  EXPECT_EQ(SetLimit(3, 14 * kUnit).status, 0u);
  measured.Release({{0, 1}});
  for (ScriptedClient* gone : {&measured, &begins}) {
    gone->Send(protocol::Bye{}, FrameType::kBye);
    gone->HangUp();
  }
  ASSERT_TRUE(Until([&] { return ledger.Find(3) != nullptr; }));
  EXPECT_EQ(ledger.Find(3)->limit, 14u);
  EXPECT_EQ(ledger.Find(3)->outside, 13u);
}

/// A pod's job that holds 4 units, has 5 outside the pool, and asks for another limit.
TEST_F(DaemonTest, AnAnnotationTakesNoMoreThanAnOrder) {
  options_.grants = dir_ + "/grants";
  options_.terms = "wait";
  Up();
  const auto store = GrantStore::Open(options_.grants);
  ASSERT_TRUE(store.ok());
  const auto grant = store->Make({"", DeviceUuidText(device_.info().uuid), 4 * kUnit, 1, {"x-0"}});
  ASSERT_TRUE(grant.ok()) << grant.status().message();
  const std::string socket = store->FolderOf(grant->id) + "/sluice.sock";
  ASSERT_TRUE(Until([&] { return std::filesystem::exists(socket); }));
  protocol::LimitSet order = SetLimit(1, 6 * kUnit);
  EXPECT_EQ(order.status, 1u);
  EXPECT_NE(std::string(order.text).find("not known on the node yet"), std::string::npos)
      << order.text;
  // What the plugin keeps room for, and what the pod is told.
  const auto annotate = [&](Units asked, Units holds, const std::string& report) {
    const GrantTerms terms = {"ns/a/main", "", asked * kUnit, 0, "ns", ""};
    ASSERT_TRUE(store->SetTerms(grant->id, terms).ok());
    ASSERT_TRUE(Until([&] {
      const auto answer = store->AnswerOf(grant->id);
      return answer.has_value() && answer->terms == TermsText(terms);
    }));
    EXPECT_EQ(store->AnswerOf(grant->id)->limit_bytes, holds * kUnit);
    EXPECT_EQ(store->ReportOf(grant->id), report);
  };
  annotate(12, 12, "");
  ScriptedClient client = OpenAs(socket, protocol::kMinor);
  client.Lease(4, 1);
  ASSERT_TRUE(Await(client).has_value());
  Managed<protocol::Charge>(client, 5 * kUnit, FrameType::kCharge);
  const auto answer = Await(client);
  ASSERT_TRUE(answer.has_value() && answer->type() == FrameType::kCharged);
  annotate(8, 12,
           "sluice.dev/memory-limit 32.0 KiB: job 1 'ns/a/main' holds 16.0 KiB and has 20.0 KiB "
           "outside the pool; allowed: from 36.0 KiB");
  annotate(9, 9, "");
  annotate(16, 16, "");
  EXPECT_EQ(SetLimit(1, 10 * kUnit).status, 0u);
  EXPECT_EQ(SetLimit(1, 8 * kUnit).status, 1u);
  ASSERT_TRUE(store->LimitOrderOf(grant->id).has_value());
  EXPECT_EQ(store->LimitOrderOf(grant->id)->limit_bytes, 10 * kUnit) << "the one before";
  EXPECT_EQ(store->AnswerOf(grant->id)->limit_bytes, 10 * kUnit);

  client.Release({{0, 4}});
  client.Send(protocol::Bye{}, FrameType::kBye);
  ASSERT_TRUE(Until([&] { return daemon_->flow().Rests(1); }));
  annotate(4, 10,
           "sluice.dev/memory-limit 16.0 KiB: job 1 'ns/a/main' has 20.0 KiB outside the pool; "
           "allowed: from 20.0 KiB");
  ScriptedClient next = OpenAs(socket, protocol::kMinor);
  ASSERT_TRUE(Until([&] { return daemon_->flow().ledger().Find(1) != nullptr; }))
      << "it goes on as before";
  EXPECT_EQ(daemon_->flow().ledger().Find(1)->limit, 10u);
  EXPECT_EQ(daemon_->flow().ledger().Find(1)->outside, 5u);
}

// Between its handshake and its first word nothing of its session is forgotten.
TEST_F(DaemonTest, ALimitLeavesTheRestOfAJobAsItIs) {
  options_.handle_bytes = kUnit;
  options_.pool_bytes = 8 * kUnit;
  Up();
  ScriptedClient launcher = Launcher();
  ScriptedClient client =
      OpenAs(Register(launcher, 6 * kUnit).path, protocol::kMinor, /*ready=*/false);
  EXPECT_EQ(SetLimit(1, 4 * kUnit).status, 0u);
  client.Ready();
  ASSERT_TRUE(Until([&] { return daemon_->flow().ledger().Find(1) != nullptr; }));
  EXPECT_EQ(daemon_->flow().ledger().Find(1)->limit, 4u);
  EXPECT_TRUE(daemon_->flow().ledger().Find(1)->stitches);
}

TEST_F(AccountTest, ALimitForItsNextSessionIsNotBelowIt) {
  const protocol::LimitSet refused = SetLimit(1, kUnit);
  EXPECT_EQ(refused.status, 1u);
  EXPECT_EQ(std::string(refused.text),
            "limit 4.0 KiB: job 1 'a job' has 8.0 KiB outside the pool; allowed: from 8.0 KiB");
  EXPECT_EQ(refused.bytes, 0u) << "nobody gave it one";
  const protocol::LimitSet set = SetLimit(1, 3 * kUnit);
  EXPECT_EQ(set.status, 0u) << set.text;
  EXPECT_EQ(set.bytes, 3 * kUnit);
  ScriptedClient client = OpenNew();
  client.Ready();
  ASSERT_TRUE(Until([&] { return daemon_->flow().ledger().Find(1) != nullptr; }));
  EXPECT_EQ(daemon_->flow().ledger().Find(1)->limit, 3u);
  EXPECT_EQ(daemon_->flow().ledger().Find(1)->outside, 2u);
  client.Lease(2, 7);
  auto answer = Await(client);
  ASSERT_TRUE(answer.has_value() && answer->type() == FrameType::kDeny);
  GiveBack(client, kUnit);
  client.Lease(2, 8);
  answer = Await(client);
  EXPECT_TRUE(answer.has_value() && answer->type() == FrameType::kGrant);
  EXPECT_EQ(SetLimit(1, 2 * kUnit).status, 1u) << "it has one unit outside now";
}

}  // namespace
}  // namespace sluice::noded
