// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "examples/train/options.h"

#include <gtest/gtest.h>

namespace train {
namespace {

std::string ErrorOf(const std::vector<std::string>& arguments) {
  Options options;
  std::string error;
  return ParseOptions(arguments, &options, &error) ? "" : error;
}

TEST(OptionsTest, ReadsValuesInBothForms) {
  Options options;
  std::string error;
  ASSERT_TRUE(ParseOptions({"--model", "small-b", "--batch=100", "--optimizer", "adam",
                            "--learning-rate", "0.001", "--seed=7", "--print-lag", "1"},
                           &options, &error))
      << error;
  EXPECT_EQ(options.shape.batch, 100);
  EXPECT_EQ(options.shape.channels, 8);
  EXPECT_EQ(options.shape.depth, 4);
  EXPECT_EQ(options.optimizer, Optimizer::kAdam);
  EXPECT_EQ(options.learning_rate, 0.001);
  EXPECT_EQ(options.seed, 7u);
  EXPECT_EQ(options.print_lag, 1);
}

TEST(OptionsTest, ErrorsNameTheOptionAndWhatItAllows) {
  EXPECT_EQ(ErrorOf({"--batch", "0"}), "--batch must be a whole number from 1 to 16384, not '0'");
  EXPECT_EQ(ErrorOf({"--channels=6"}), "--channels must be a power of two from 4 to 32, not '6'");
  EXPECT_EQ(ErrorOf({"--model", "big"}), "--model must be small-a or small-b, not 'big'");
  EXPECT_EQ(ErrorOf({"--momentum", "nan"}),
            "--momentum must be a number from 0 to 0.999, not 'nan'");
  EXPECT_EQ(ErrorOf({"--iterations"}),
            "--iterations needs a value: a whole number from 1 to 1000000");
  EXPECT_NE(ErrorOf({"--seed", "-1"}).find("--seed must be"), std::string::npos);
  EXPECT_NE(ErrorOf({"--depth", "3x"}).find("--depth must be"), std::string::npos);
  EXPECT_NE(ErrorOf({"--bogus"}).find("unknown option '--bogus'"), std::string::npos);
  EXPECT_NE(ErrorOf({"stray"}).find("unknown option 'stray'"), std::string::npos);
}

TEST(OptionsTest, HelpTellsOfTheLag) {
  EXPECT_NE(HelpText().find("--print-lag"), std::string::npos);
  EXPECT_NE(HelpText().find("wait for iteration n-N"), std::string::npos);
}

}  // namespace
}  // namespace train
