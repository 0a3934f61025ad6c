// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tools/replay/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sluice::replay {
namespace {

Report Sound() {
  Report report;
  report.iteration_ms = {3, 1, 2, 4};
  report.words_expected = report.words_checked = 10;
  return report;
}

TEST(ReportTest, PercentilesAreValuesThatWereMeasured) {
  EXPECT_EQ(Percentile({}, 0.5), 0);
  EXPECT_EQ(Percentile({3, 1, 2, 4}, 0.5), 2);
  EXPECT_EQ(Percentile({3, 1, 2, 4}, 0.9), 4);
  EXPECT_EQ(Percentile({3, 1, 2, 4}, 0), 1);
  EXPECT_EQ(Percentile({3, 1, 2, 4}, 1), 4);
}

TEST(ReportTest, BothFormsSayTheSame) {
  const Report report = Sound();
  const nlohmann::json json = nlohmann::json::parse(ReportJson(report));
  EXPECT_EQ(json.at("ok"), true);
  EXPECT_EQ(json.at("iteration_ms"), nlohmann::json(report.iteration_ms));
  EXPECT_EQ(json.at("iteration_ms_mean"), 2.5);
  EXPECT_FALSE(json.contains("first_mismatch"));
  const std::string text = ReportText(report);
  EXPECT_NE(text.find("iterations=4\n"), std::string::npos) << text;
  EXPECT_NE(text.find("words_checked=10\n"), std::string::npos) << text;
  EXPECT_EQ(Complaint(report), "");
}

TEST(ReportTest, AWrongWordIsNamed) {
  Report report = Sound();
  report.mismatches = 3;
  report.first = Mismatch{2, 5, 7};
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(Complaint(report),
            "3 of 10 words were not what their last writer left, first in block 7, read by "
            "operator 5 of iteration 2");
  const nlohmann::json json = nlohmann::json::parse(ReportJson(report));
  EXPECT_EQ(json.at("ok"), false);
  EXPECT_EQ(json.at("first_mismatch").at("operator"), 5);
}

TEST(ReportTest, AWordThatNobodyLookedAtIsNoSuccess) {
  Report report = Sound();
  report.words_checked = 9;
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(Complaint(report), "the GPU looked at 9 words, not at 10");
}

}  // namespace
}  // namespace sluice::replay
