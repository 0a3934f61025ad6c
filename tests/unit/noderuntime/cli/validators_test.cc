// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/validators.h"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

TEST(Validators, AWholeNumberInItsRange) {
  const CLI::Validator check = Integer(2, 40);
  for (const char* good : {"2", "40", "17"}) EXPECT_EQ(check(std::string(good)), "");
  for (const std::string bad : {"1", "41", "", "-3", "3.0", "3x", " 3"}) {
    EXPECT_EQ(check(bad), "'" + bad + "'; allowed: a whole number from 2 to 40");
  }
}

TEST(Validators, ANumberWithAFraction) {
  const CLI::Validator check = Between(0.5, 1.0, "a half to one");
  EXPECT_EQ(check(std::string("0.75")), "");
  EXPECT_EQ(check(std::string("0.25")), "'0.25'; allowed: a half to one");
}

TEST(Validators, OneOfSomeWords) {
  const CLI::Validator check = OneOf({"a", "b"});
  EXPECT_EQ(check(std::string("b")), "");
  EXPECT_EQ(check(std::string("c")), "'c'; allowed: a, b");
}

TEST(Validators, AFileToWriteHasAName) {
  const CLI::Validator check = FileToWrite();
  for (const char* good : {"a", "./-", "/dev/stdout", "--"}) {
    EXPECT_EQ(check(std::string(good)), "") << good;
  }
  EXPECT_EQ(check(std::string("")), "''; allowed: the name of a file");
  EXPECT_EQ(check(std::string("-")),
            "'-'; allowed: the name of a file (./- for one that is called so)");
}

}  // namespace
}  // namespace sluice::cli
