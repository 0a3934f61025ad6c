// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/metrics/family.h"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <sstream>

namespace sluice::metrics {
namespace {

std::string Text(Family family) {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, {std::move(family).Take()});
  return text.str();
}

TEST(Family, HasItsCommonLabelsBeforeItsOwn) {
  Family family({"a_bytes", Type::kGauge, "of", "All"});
  EXPECT_TRUE(family.empty());
  family.SetCommon(LabelText(Labels{{"gpu", "0"}}));
  family.Add(1, {{"of", "x"}});
  family.SetCommon(LabelText(Labels{{"gpu", "1"}}));
  family.Add(std::optional<uint64_t>(5), 0.5);
  EXPECT_EQ(Text(std::move(family)),
            "# HELP a_bytes All\n# TYPE a_bytes gauge\n"
            "a_bytes{gpu=\"0\",of=\"x\"} 1\na_bytes{gpu=\"1\"} 2.5\n");
}

TEST(Family, LabelsAreEscapedWhereverTheyStand) {
  Family family({"a_bytes", Type::kGauge, "of", "All"});
  family.SetCommon(LabelText(Labels{{"pod", "a\"b\\c\nd"}, {"id", "=\"1\","}}));
  family.Add(1, {{"of", "\"x\\"}});
  family.Add(2);
  const std::string common = R"({pod="a\"b\\c\nd",id="=\"1\",")";
  EXPECT_EQ(Text(std::move(family)), "# HELP a_bytes All\n# TYPE a_bytes gauge\na_bytes" + common +
                                         R"(,of="\"x\\"} 1)" + "\na_bytes" + common + "} 2\n");
}

TEST(Family, WhatIsUnknownIsNotThere) {
  Family family({"a_total", Type::kCounter, "", "All"});
  family.Add(std::optional<uint64_t>());
  family.Add(std::optional<Histogram>());
  EXPECT_TRUE(family.empty());
  family.Add(std::optional<uint64_t>(9007199254740991));
  EXPECT_NE(Text(std::move(family)).find("a_total 9007199254740991\n"), std::string::npos);
}

TEST(Family, AHistogramIsCumulativeAndInSeconds) {
  Family family({"a_seconds", Type::kHistogram, "", "All"});
  family.Add(Histogram{{1'000'000, 500'000'000}, {2, 0, 3}, 2'500'000'000});
  EXPECT_EQ(Text(std::move(family)),
            "# HELP a_seconds All\n# TYPE a_seconds histogram\n"
            "a_seconds_count 5\na_seconds_sum 2.5\n"
            "a_seconds_bucket{le=\"0.001\"} 2\n"
            "a_seconds_bucket{le=\"0.5\"} 2\n"
            "a_seconds_bucket{le=\"+Inf\"} 5\n");
  Family other({"a_seconds", Type::kHistogram, "", "All"});
  other.Add(Histogram{{1, 2}, {1, 2}, 3});
  EXPECT_TRUE(other.empty()) << "its counts are of other bounds";
}

TEST(LabelValue, IsWhatPrometheusTakes) {
  EXPECT_EQ(LabelValue("grün 猫 😀"), "grün 猫 😀");
  EXPECT_EQ(LabelValue("a\nb\x7F"), "a\uFFFDb\uFFFD");
  EXPECT_EQ(LabelValue(std::string_view("a\0b", 3)), "a\uFFFDb");
  for (const char* bad : {"\x80", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                          "\xF8\x88\x80\x80\x80", "\xC3", "\xE2\x82"}) {
    const std::string value = LabelValue(bad);
    EXPECT_EQ(value.find_first_not_of("\uFFFD"), std::string::npos) << value;
    EXPECT_FALSE(value.empty());
  }
  EXPECT_EQ(LabelValue(std::string(1000, 'x')).size(), kMostLabelBytes);
  // Not cut within a character.
  std::string wide;
  for (int i = 0; i < 100; ++i) wide += "猫";
  EXPECT_EQ(LabelValue(wide), wide.substr(0, kMostLabelBytes / 3 * 3));
}

}  // namespace
}  // namespace sluice::metrics
