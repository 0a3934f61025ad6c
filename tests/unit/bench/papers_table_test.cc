// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/papers_table.h"

#include <gtest/gtest.h>

#include "bench/papers_svg.h"

namespace sluice::bench {
namespace {

PaperTable Sample() {
  PaperTable table;
  table.name = "sample";
  table.title = "two rows";
  table.columns = {"model", "paper", "ours"};
  table.rows = {{"a, \"b\"", uint64_t{12}, Cell(1.25, 1)}, {"c", Cell(), Cell(0.5, 3)}};
  table.notes = {"a note"};
  table.goals = {{"enough", 1.0, 1.0}, {"too little", 0.999, 1.0}};
  return table;
}

TEST(PapersTable, EveryLineSaysWhatItsFiguresAre) {
  const std::string text = TextOf(Sample());
  EXPECT_NE(text.find("12    1.2  simulated\n"), std::string::npos) << text;
  EXPECT_NE(text.find("-  0.500  simulated\n"), std::string::npos) << text;
  EXPECT_NE(MarkdownOf(Sample()).find("| c | - | 0.500 | simulated |\n"), std::string::npos);
  EXPECT_NE(CsvOf(Sample()).find("\"a, \"\"b\"\"\",12,1.2,simulated\n"), std::string::npos)
      << CsvOf(Sample());
}

TEST(PapersTable, AMissedGoalIsMissedEverywhere) {
  EXPECT_TRUE(Sample().goals[0].met());
  EXPECT_FALSE(Sample().goals[1].met());
  for (const std::string& text : {TextOf(Sample()), MarkdownOf(Sample())}) {
    EXPECT_NE(text.find("enough: 1.000, goal 1.000 or more: met\n"), std::string::npos) << text;
    EXPECT_NE(text.find("too little: 0.999, goal 1.000 or more: MISSED\n"), std::string::npos);
  }
  const nlohmann::json json = JsonOf(Sample());
  EXPECT_EQ(json["goals"][0]["met"], true);
  EXPECT_EQ(json["goals"][1]["met"], false);
}

TEST(PapersTable, ProgramsGetNumbersThatAreNotRounded) {
  const nlohmann::json json = JsonOf(Sample());
  EXPECT_EQ(json["figures"], "simulated");
  EXPECT_EQ(json["rows"][0]["ours"], 1.25);
  EXPECT_EQ(json["rows"][0]["paper"], 12);
  EXPECT_TRUE(json["rows"][1]["paper"].is_null()) << "nothing is known";
}

TEST(PapersSvg, PointsLieWhereTheAxesSay) {
  const Chart chart{"name", "title", "x", "y", {{"one", {{0, 0}, {10, 5}}}, {"two", {{10, 2.5}}}}};
  const std::string svg = SvgOf(chart);
  EXPECT_NE(svg.find("title (simulated)"), std::string::npos);
  // The plot is 500 by 320, from 80 and 40 on; 5 is the highest tick.
  EXPECT_NE(svg.find("points=\"80.0,360.0 580.0,40.0 \""), std::string::npos) << svg;
  EXPECT_NE(svg.find("points=\"580.0,200.0 \""), std::string::npos) << svg;
  EXPECT_NE(SvgOf({"empty", "no points", "x", "y", {}}).find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace sluice::bench
