// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/contract/answers.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <sstream>

namespace sluice::contract {
namespace {

/// GTEST_SKIP returns from the function it stands in, and this one is not the test.
[[noreturn]] void Skip(const std::string& why) {
  [&] { GTEST_SKIP() << why; }();
  // Taken by GoogleTest for something that is reported already.
  throw ::testing::AssertionException(
      ::testing::TestPartResult(::testing::TestPartResult::kSkip, __FILE__, __LINE__, why.c_str()));
}

}  // namespace

bool RealDriver() {
  const char* driver = getenv("SLUICE_CONTRACT_DRIVER");
  return driver != nullptr && strcmp(driver, "real") == 0;
}

void OnlySimulated(const std::string& why) {
  if (RealDriver()) Skip("skipped on a real driver: " + why);
}

void OnlyReal(const std::string& why) {
  if (!RealDriver()) Skip("skipped on the simulated driver: " + why);
}

void Answer(const std::string& question, const std::string& answer) {
  ::testing::Test::RecordProperty("answer." + question, answer);
}

void AnswerIf(const std::string& question, bool yes) { Answer(question, yes ? "yes" : "no"); }

void Measure(const std::string& what, double value) {
  std::ostringstream text;
  text << value;
  ::testing::Test::RecordProperty("measured." + what, text.str());
}

}  // namespace sluice::contract
