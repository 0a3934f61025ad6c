// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/injection.h"

#include <gtest/gtest.h>

namespace sluice::simgpu {
namespace {

TEST(Injection, ReadsNamesNumbersAndActions) {
  const auto rules = ParseInjections(
      "cuMemCreate@3=CUDA_ERROR_OUT_OF_MEMORY; cuMemMap=2ms;cuMemAlloc*@2+5=2,10us ;"
      "cuStreamSynchronize@4+* = 700");
  ASSERT_TRUE(rules.ok()) << rules.status().message();
  ASSERT_EQ(rules->size(), 4u);
  const Injection& third_create = (*rules)[0];
  EXPECT_STREQ(third_create.name, "cuMemCreate");
  EXPECT_EQ(third_create.first, 3u);
  EXPECT_EQ(third_create.count, 1u);
  EXPECT_EQ(third_create.result, 2u);
  EXPECT_EQ((*rules)[1].delay_ns, 2'000'000u);
  EXPECT_EQ((*rules)[1].result, 0u);
  EXPECT_EQ((*rules)[1].count, UINT64_MAX);
  EXPECT_EQ((*rules)[2].count, 5u);
  EXPECT_EQ((*rules)[2].delay_ns, 10'000u);
  EXPECT_EQ((*rules)[3].first, 4u);
  EXPECT_EQ((*rules)[3].count, UINT64_MAX);
  EXPECT_EQ((*rules)[3].result, 700u);
  EXPECT_TRUE(ParseInjections("")->empty());
}

TEST(Injection, AStarStandsForAnyEnding) {
  Injection rule{};
  snprintf(rule.name, sizeof rule.name, "cuMemAlloc*");
  EXPECT_TRUE(rule.Names("cuMemAlloc_v2"));
  EXPECT_TRUE(rule.Names("cuMemAllocAsync_ptsz"));
  EXPECT_FALSE(rule.Names("cuMemFree_v2"));
  snprintf(rule.name, sizeof rule.name, "cuMemAlloc");
  EXPECT_FALSE(rule.Names("cuMemAlloc_v2"));
}

TEST(Injection, NamesThePieceAndWhatIsAllowed) {
  const struct {
    const char* text;
    const char* needle;
  } cases[] = {
      {"cuMemCreate", "NAME[@FIRST"},
      {"cuMemcreate=2", "that the driver exports"},
      {"=2", "the name of a driver function"},
      {"cuMemCreate@0=2", "numbers from 1"},
      {"cuMemCreate@1+0=2", "numbers from 1"},
      {"cuMemCreate@x=2", "numbers from 1"},
      {"cuMemCreate=", "an action is"},
      {"cuMemCreate=CUDA_SUCCESS", "an action is"},
      {"cuMemCreate=0", "an action is"},
      {"cuMemCreate=2,", "an action is"},
      {"cuMemCreate=61s", "at most 60s"},
      {"cuMemCreate=CUDA_ERROR_OUT_OF_MEMROY", "CUDA_ERROR_OUT_OF_MEMORY"},
  };
  for (const auto& c : cases) {
    const auto rules = ParseInjections(std::string("cuMemMap=1ms;") + c.text);
    ASSERT_FALSE(rules.ok()) << c.text;
    EXPECT_NE(rules.status().message().find("'" + std::string(c.text) + "'"), std::string::npos)
        << rules.status().message();
    EXPECT_NE(rules.status().message().find(c.needle), std::string::npos)
        << rules.status().message();
  }
  std::string many;
  for (uint32_t i = 0; i <= kMaxInjections; ++i) many += "cuMemMap=1ms;";
  EXPECT_FALSE(ParseInjections(many).ok());
}

TEST(Injection, ConcernsTheCallsThatItCounts) {
  InjectionSlot slots[2] = {};
  const auto rules = ParseInjections("cuMemCreate@2+2=2;cuMem*=5us");
  ASSERT_TRUE(rules.ok());
  for (size_t i = 0; i < 2; ++i) slots[i].rule = (*rules)[i];
  std::vector<uint32_t> results;
  for (int i = 0; i < 5; ++i) {
    const Suffering s = Suffer(slots, 2, "cuMemCreate");
    EXPECT_EQ(s.delay_ns, 5'000u);
    results.push_back(s.result);
  }
  EXPECT_EQ(results, (std::vector<uint32_t>{0, 2, 2, 0, 0}));
  EXPECT_EQ(Suffer(slots, 2, "cuLaunchKernel").delay_ns, 0u);
  EXPECT_EQ(slots[0].calls.load(), 5u);
  EXPECT_EQ(slots[0].hits.load(), 2u);
  EXPECT_EQ(slots[1].hits.load(), 5u);
}

}  // namespace
}  // namespace sluice::simgpu
