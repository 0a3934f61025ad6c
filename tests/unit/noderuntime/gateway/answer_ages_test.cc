// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gateway/answer_ages.h"

#include <gtest/gtest.h>

namespace sluice::gateway {
namespace {

GpuView Seen(uint32_t number, bool there, bool up, uint64_t look_ns = 0) {
  GpuView gpu;
  gpu.number = number;
  gpu.there = there;
  gpu.up = up;
  gpu.look_ns = look_ns;
  return gpu;
}

TEST(AnswerAges, GrowWhileADaemonIsSilent) {
  AnswerAges ages;
  const auto look = [&](uint64_t now, bool up) {
    std::vector<GpuView> gpus = {Seen(0, true, up), Seen(1, true, true)};
    ages.Note(now, &gpus);
    EXPECT_EQ(gpus[1].answer_age_ns, 0u) << "its neighbour answers";
    return *gpus[0].answer_age_ns;
  };
  EXPECT_EQ(look(100, true), 0u);
  EXPECT_EQ(look(200, false), 100u);
  EXPECT_EQ(look(300, false), 200u);
  EXPECT_EQ(look(350, true), 0u);
  EXPECT_EQ(look(450, false), 100u);
}

TEST(AnswerAges, BeginWithTheFirstQuestion) {
  AnswerAges ages;
  std::vector<GpuView> gpus = {Seen(0, true, false, 20)};
  ages.Note(100, &gpus);
  EXPECT_EQ(gpus[0].answer_age_ns, 20u) << "for so long it was asked";
  ages.Note(150, &gpus);
  EXPECT_EQ(gpus[0].answer_age_ns, 70u);
}

// It died, and the next one is another one.
TEST(AnswerAges, BeginAnewWhereThereWasNoDaemon) {
  AnswerAges ages;
  std::vector<GpuView> silent = {Seen(0, true, false)};
  ages.Note(100, &silent);
  std::vector<GpuView> none = {Seen(0, false, false)};
  ages.Note(200, &none);
  EXPECT_FALSE(none[0].answer_age_ns.has_value());
  ages.Note(300, &silent);
  EXPECT_EQ(silent[0].answer_age_ns, 0u);
}

}  // namespace
}  // namespace sluice::gateway
