// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/trainer_output.h"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

TEST(ParseTrainerOutput, ReadsLossesAndTheSummary) {
  const auto output = ParseTrainerOutput({"hello", "loss 0 0x1.26f5cep+1", "loss 1 -0x1p-3",
                                          "done iterations=2 peak_bytes=31457280 base_bytes=5"});
  ASSERT_TRUE(output.ok()) << output.status().message();
  EXPECT_EQ(output->losses, (std::vector<std::string>{"0x1.26f5cep+1", "-0x1p-3"}));
  EXPECT_EQ(output->peak_bytes, 31457280u);
}

TEST(ParseTrainerOutput, WithoutASummaryThereIsNoPeak) {
  const auto output = ParseTrainerOutput({"loss 0 0x1p+0"});
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(output->peak_bytes, std::nullopt);
}

TEST(ParseTrainerOutput, ALineThatCannotBeReadIsAnError) {
  EXPECT_EQ(ParseTrainerOutput({"loss 0 1.5"}).status().message(),
            "'loss 0 1.5': no loss in hexadecimal floating point");
  EXPECT_FALSE(ParseTrainerOutput({"loss 0 0x1p+"}).ok());
  EXPECT_FALSE(ParseTrainerOutput({"loss 0 0x1p+0x"}).ok());
  EXPECT_EQ(ParseTrainerOutput({"done peak_bytes=x"}).status().message(),
            "'done peak_bytes=x': no peak_bytes");
}

TEST(AllFinite, ADivergedRunIsNot) {
  EXPECT_TRUE(AllFinite({"0x1p+0", "-0x1p-3"}));
  EXPECT_FALSE(AllFinite({"0x1p+0", "-nan"}));
  EXPECT_FALSE(AllFinite({"inf"}));
}

TEST(CountLosses, CountsOnlyLosses) {
  EXPECT_EQ(CountLosses({"loss 0 0x1p+0", "done", "losses", "loss 1 0x1p+0"}), 2u);
}

TEST(CompareLosses, OneBitOfDifferenceIsADifference) {
  EXPECT_EQ(CompareLosses({"0x1p+0", "0x1.8p+0"}, {"0x1p+0", "0x1.8p+0"}), "");
  EXPECT_EQ(CompareLosses({"0x1p+0", "0x1.800002p+0"}, {"0x1p+0", "0x1.8p+0"}),
            "iteration 1: 0x1.8p+0 instead of 0x1.800002p+0");
}

TEST(CompareLosses, AShorterSequenceIsADifference) {
  EXPECT_EQ(CompareLosses({"0x1p+0", "0x1p+0"}, {"0x1p+0"}), "1 losses instead of 2");
  EXPECT_EQ(CompareLosses({"0x1p+0"}, {}), "0 losses instead of 1");
}

}  // namespace
}  // namespace sluice::cli
