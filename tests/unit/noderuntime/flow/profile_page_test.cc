// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/flow/profile_page.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "intercept/protocol/page_access.h"

namespace sluice::flow {
namespace {

class ProfilePageTest : public ::testing::Test {
 protected:
  ProfilePageTest() {
    profile_.period = 3;
    profile_.pacing_stream = 4;
    profile_.window = 2;
    profile_.trough_hash = 77;
    profile_.trough_place = scheduler::TroughPlace::kAfterLast;
    profile_.launch_ns = {10, 20, 30};
    plan_.gates = {{0, 5, 2}, {2, 9, 3}};
    plan_.credit_ns = 123;
  }
  const protocol::ProfileImage& Read() {
    EXPECT_TRUE(protocol::ReadProfile(*page_, image_.get()));
    return *image_;
  }

  scheduler::Profile profile_;
  scheduler::CyclePlan plan_;
  std::unique_ptr<protocol::DaemonPage> page_ = std::make_unique<protocol::DaemonPage>();
  std::unique_ptr<protocol::ProfileImage> image_ = std::make_unique<protocol::ProfileImage>();
};

TEST_F(ProfilePageTest, CarriesEveryFieldAndCanBeWithdrawn) {
  ASSERT_TRUE(PublishProfile(profile_, plan_, 6, page_.get()));
  EXPECT_EQ(Read().profile_id, 6u);
  EXPECT_EQ(Read().period, 3u);
  EXPECT_EQ(Read().pacing_slot, 4u);
  EXPECT_EQ(Read().window, 2u);
  EXPECT_EQ(Read().trough_hash, 77u);
  EXPECT_EQ(Read().trough_place, protocol::TroughPlace::kAfterLast);
  EXPECT_EQ(Read().credit_ns, 123u);
  EXPECT_EQ(Read().gate_count, 2u);
  EXPECT_EQ(Read().gates[1].launch, 2u);
  EXPECT_EQ(Read().gates[1].need_units, 9u);
  EXPECT_EQ(Read().launch_ns[2], 30u);
  EXPECT_EQ(Read().launch_ns[3], 0u);
  WithdrawProfile(page_.get());
  EXPECT_EQ(Read().profile_id, 0u);
  EXPECT_EQ(Read().gate_count, 0u);
}

TEST_F(ProfilePageTest, OtherAmountsChangeNothingElse) {
  plan_.credit_ns = 99;
  PublishAmounts(plan_, page_.get());
  EXPECT_EQ(Read().profile_id, 0u) << "there is no profile to change";
  plan_.credit_ns = 123;
  ASSERT_TRUE(PublishProfile(profile_, plan_, 6, page_.get()));
  const protocol::ProfileImage before = Read();
  plan_.credit_ns = 99;
  plan_.gates[0].need_units = 9;
  PublishAmounts(plan_, page_.get());
  EXPECT_GT(Read().seq, before.seq) << "the client looks again";
  protocol::ProfileImage expected = before;
  expected.credit_ns = 99;
  expected.gates[0].need_units = 9;
  expected.seq = Read().seq;
  EXPECT_EQ(std::memcmp(&Read(), &expected, sizeof expected), 0);
  const uint32_t seq = Read().seq;
  PublishAmounts(plan_, page_.get());
  EXPECT_EQ(Read().seq, seq) << "nothing to say";
  plan_.gates.pop_back();
  PublishAmounts(plan_, page_.get());
  EXPECT_EQ(Read().seq, seq) << "of another profile";
}

TEST_F(ProfilePageTest, WhatDoesNotFitIsNotPublished) {
  profile_.period = protocol::kMaxPeriodLaunches + 1;
  profile_.launch_ns.resize(profile_.period);
  EXPECT_FALSE(PublishProfile(profile_, plan_, 1, page_.get()));
  profile_.period = 4;
  profile_.launch_ns.resize(3);
  EXPECT_FALSE(PublishProfile(profile_, plan_, 1, page_.get()));
  profile_.period = 3;
  plan_.gates.resize(protocol::kMaxGates + 1);
  EXPECT_FALSE(PublishProfile(profile_, plan_, 1, page_.get()));
  EXPECT_EQ(Read().profile_id, 0u);
}

}  // namespace
}  // namespace sluice::flow
