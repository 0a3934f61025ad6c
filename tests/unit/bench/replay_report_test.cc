// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/replay_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sluice::bench {
namespace {

/// So many pairs, on both sides the same.
std::vector<ReplayRow> Exact(size_t pairs) {
  ReplayedJob job;
  job.mean_ms = job.median_ms = 100;
  job.iterations = 20;
  job.most_granted = job.most_used = job.most_held = 50;
  ReplayRow row;
  row.pair = "one + other";
  row.policy = "flow";
  row.live.jobs = row.model.jobs = {job, job};
  return std::vector<ReplayRow>(pairs, row);
}

bool Says(const ReplayVerdict& verdict, const std::string& text) {
  return verdict.text.find(text) != std::string::npos;
}

TEST(ReplayReport, NobodyIsOffByMoreThanTheGoal) {
  std::vector<ReplayRow> rows = Exact(10);
  rows[3].live.jobs[1].most_held += 1;
  const ReplayVerdict verdict = Judge(rows);
  EXPECT_TRUE(verdict.met) << verdict.text;
  EXPECT_TRUE(Says(verdict, "off by 0 at p90 and by at most 1, 20 of 20")) << verdict.text;
}

TEST(ReplayReport, OneJobIsOffInEitherDirection) {
  for (const int off : {-2, 2}) {
    std::vector<ReplayRow> rows = Exact(10);
    auto& granted = rows[3].live.jobs[1].most_granted;
    granted = static_cast<scheduler::Units>(static_cast<int>(granted) + off);
    const ReplayVerdict verdict = Judge(rows);
    EXPECT_FALSE(verdict.met);
    EXPECT_TRUE(Says(verdict,
                     "granted at most by a job, in lease units: off by 0 at p90 and by at "
                     "most 2, 19 of 20 by at most one, goal <= 1 of all  missed"))
        << verdict.text;
    EXPECT_TRUE(Says(verdict,
                     "held at most by a job, in lease units: off by 0 at p90 and by at "
                     "most 0, 20 of 20 by at most one, goal <= 1 of all  ok"))
        << verdict.text;
  }
}

TEST(ReplayReport, AtP90MeansNineOfTen) {
  std::vector<ReplayRow> rows = Exact(10);
  for (size_t row = 0; row < 3; ++row) rows[row].live.jobs[0].most_granted += 5;
  EXPECT_TRUE(Says(Judge(rows), "off by 5 at p90 and by at most 5, 17 of 20"));
  rows[0].live.jobs[0].most_granted -= 5;
  const ReplayVerdict two = Judge(rows);
  EXPECT_TRUE(Says(two, "off by 0 at p90 and by at most 5, 18 of 20")) << two.text;
}

TEST(ReplayReport, TheTimeOfAnIteration) {
  std::vector<ReplayRow> rows = Exact(10);
  for (size_t row = 0; row < 3; ++row) rows[row].live.jobs[0].mean_ms = 120;
  const ReplayVerdict verdict = Judge(rows);
  EXPECT_FALSE(verdict.met);
  EXPECT_TRUE(Says(verdict, "p50 0.0 %, p90 16.7 %, goal <= 10 %  missed")) << verdict.text;
}

TEST(ReplayReport, WithoutFiguresNothingIsMet) {
  std::vector<ReplayRow> rows = Exact(1);
  rows[0].error = "a process was killed";
  EXPECT_FALSE(Judge(rows).met);
  EXPECT_FALSE(Judge({}).met);
  const nlohmann::json json = ReplayJson(rows, {}, "steps", scheduler::Placing::kPieces);
  EXPECT_EQ(json["failed"], 1);
  EXPECT_EQ(json["placing"], "pieces");
  EXPECT_EQ(json["held_off_p90"], 0);
  EXPECT_EQ(json["rows"][0]["failed"], "a process was killed");
}

}  // namespace
}  // namespace sluice::bench
