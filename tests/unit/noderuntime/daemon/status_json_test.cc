// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/daemon/status_json.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "tests/support/fake_gpu.h"
#include "tests/unit/noderuntime/flow/flow_fixture.h"

namespace sluice::noded {
namespace {

TEST(ServiceTimes, TheMedianIgnoresWhatTheSystemDidInBetween) {
  ServiceTimes times;
  EXPECT_EQ(times.median_ns(), 0u);
  for (int i = 0; i < 99; ++i) times.Add(2000);
  times.Add(10'000'000);
  EXPECT_EQ(times.count(), 100u);
  EXPECT_GT(times.mean_ns(), 100'000u);
  EXPECT_LE(times.median_ns(), 2000u);
  EXPECT_GE(times.median_ns(), 1750u);
}

TEST(ServiceTimes, EveryValueHasABucket) {
  for (const uint64_t ns : {uint64_t{0}, uint64_t{1}, uint64_t{7}, uint64_t{8}, uint64_t{15},
                            uint64_t{16}, uint64_t{1} << 40, ~uint64_t{0}}) {
    ServiceTimes times;
    times.Add(ns);
    EXPECT_LE(times.median_ns(), ns);
    EXPECT_GE(times.median_ns(), ns - ns / 8);
  }
}

class StatusJsonTest : public flow::FlowTest {
 protected:
  nlohmann::json Status(bool events = true) {
    gpu::DeviceInfo device;
    device.name = "a \"GPU\"";
    return nlohmann::json::parse(StatusJson(*flow_,
                                            {{1, {"one", 11, true, 0, 0, {11, 12}}},
                                             {2, {"two", 22, true, 0, 0, {}}},
                                             {3, {"three\xff", 0, false, 8 * kUnit, 0, {}}}},
                                            device, node_, host_tier_, figures_, ServiceTimes(),
                                            nullptr, now_, events));
  }

  NodeFacts node_ = {.handle_bytes = 2 * kUnit, .draining = true, .bypassed = BypassCounts{2, 1}};
  figures::Figures figures_{40};
  testing::FakeGpu device_{40 * kUnit};
  hosttier::HostTier host_tier_{&device_, kUnit, 20 * kUnit};
};

TEST_F(StatusJsonTest, TellsOfTheHostTier) {
  EXPECT_EQ(Status()["host_tier"],
            nlohmann::json({{"capacity_bytes", 20 * kUnit}, {"used_bytes", 0}}));
  ASSERT_TRUE(host_tier_.Evict(1, {{0, 3}}).ok());
  EXPECT_EQ(Status()["host_tier"]["used_bytes"], 3 * kUnit);
}

TEST_F(StatusJsonTest, SaysWhoHoldsWhatAndWhyOthersWait) {
  Start(1);
  ASSERT_TRUE(Lease(1, 10).ok());
  Start(2);
  ASSERT_TRUE(Lease(2, 5).ok());
  now_ += 30 * kMs;
  const nlohmann::json status = Status();
  EXPECT_EQ(status["gpu_name"], "a \"GPU\"");
  EXPECT_EQ(status["pool_bytes"], 40 * kUnit);
  EXPECT_EQ(status["free_bytes"], 30 * kUnit);
  const nlohmann::json& one = status["jobs"][0];
  EXPECT_EQ(one["phase"], "unprofiled");
  EXPECT_EQ(one["held_bytes"], 10 * kUnit);
  EXPECT_EQ(one["limit_bytes"], 40 * kUnit);
  EXPECT_EQ(one["profile"], nullptr);
  EXPECT_EQ(one["waiting"], nullptr);
  EXPECT_EQ(one["pressure"], true);
  const nlohmann::json& two = status["jobs"][1];
  EXPECT_EQ(two["phase"], "waiting");
  EXPECT_EQ(two["waiting"]["kind"], "begin");
  EXPECT_EQ(two["waiting"]["bytes"], 5 * kUnit);
  EXPECT_EQ(two["waiting"]["since_ms"], 30);
  EXPECT_NE(two["waiting"]["reason"].get<std::string>().find("job 1 'one' "), 0u);
  const nlohmann::json& three = status["jobs"][2];
  EXPECT_EQ(three["phase"], "registered");
  EXPECT_EQ(three["limit_bytes"], 8 * kUnit);
}

TEST_F(StatusJsonTest, TellsOfFunctionsThatPassUnseenBesideMemory) {
  Start(1);
  for (const auto& [family, value] : {std::pair(protocol::Family::kUnseenNames, 3),
                                      std::pair(protocol::Family::kUnseenLookups, 40),
                                      std::pair(protocol::Family::kHostPinned, 4096)}) {
    protocol::Count count{};
    count.family = static_cast<uint32_t>(family);
    count.bytes = static_cast<uint64_t>(value);
    ASSERT_TRUE(flow_->OnCount(1, count).ok());
  }
  protocol::Count beyond{};
  beyond.family = static_cast<uint32_t>(protocol::Family::kUnseenLookups) + 1;
  EXPECT_FALSE(flow_->OnCount(1, beyond).ok());
  const nlohmann::json job = Status()["jobs"][0];
  EXPECT_EQ(job["unseen_functions"], 3);
  EXPECT_EQ(job["unseen_lookups"], 40);
  EXPECT_EQ(job["outside"], nlohmann::json({{"host_pinned", 4096}}));
}

TEST_F(StatusJsonTest, WhatAProgramSaysOfItselfIsBoundedByWhatCanBe) {
  Start(1);
  ASSERT_TRUE(Lease(1, 20).ok());
  clients_[1].client->live_bytes = 5 * kUnit;
  clients_[1].client->run_ahead_ns = 3 * kMs;
  EXPECT_EQ(Status()["jobs"][0]["live_bytes"], 5 * kUnit);
  EXPECT_EQ(Status()["jobs"][0]["run_ahead_ns"], 3 * kMs);
  clients_[1].client->live_bytes = ~uint64_t{0};
  clients_[1].client->run_ahead_ns = ~uint64_t{0};
  EXPECT_EQ(Status()["jobs"][0]["live_bytes"], 20 * kUnit) << "what it holds";
  EXPECT_EQ(Status()["jobs"][0]["run_ahead_ns"], 3600 * kS);
}

TEST_F(StatusJsonTest, WhereNobodyLooksForThemTheNumberOfStrangersIsNotKnown) {
  EXPECT_EQ(Status()["bypassed"], nlohmann::json({{"pods", 2}, {"others", 1}}));
  node_.bypassed.reset();
  EXPECT_EQ(Status()["bypassed"], nullptr);
}

TEST_F(StatusJsonTest, SaysWhetherThereIsAKeeper) {
  EXPECT_EQ(Status()["keeper"], nullptr) << "it is not to have one";
  node_.keeper = KeeperFacts{true, 71, 1, 0};
  EXPECT_EQ(Status()["keeper"], nlohmann::json({{"pid", 71}, {"losses", 1}, {"missing_ms", 0}}));
  node_.keeper = KeeperFacts{false, 0, 2, 1'500'000'000};
  EXPECT_EQ(Status()["keeper"],
            nlohmann::json({{"pid", nullptr}, {"losses", 2}, {"missing_ms", 1500}}));
}

TEST_F(StatusJsonTest, WhatHappenedLatelyIsToldToWhoeverWantsIt) {
  figures_.Told(1, now_, "memory", "waits for 1.0 MiB");
  EXPECT_EQ(Status()["jobs"][0]["figures"]["events"].size(), 1u);
  EXPECT_TRUE(Status(false)["jobs"][0]["figures"]["events"].empty());
  EXPECT_EQ(Status(false).size(), Status().size());
}

TEST_F(StatusJsonTest, ShowsTheProfile) {
  Start(1);
  ASSERT_TRUE(Lease(1, 20).ok());
  ASSERT_NE(Measure(1, 20), 0u);
  const nlohmann::json profile = Status()["jobs"][0]["profile"];
  EXPECT_EQ(profile["period"], 40);
  EXPECT_EQ(profile["peak_bytes"], 20 * kUnit);
  EXPECT_LE(profile["base_bytes"], kUnit);
  EXPECT_GT(profile["iteration_ns"], 0);
}

}  // namespace
}  // namespace sluice::noded
