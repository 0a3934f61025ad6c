// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/papers_more_jobs.h"

#include <gtest/gtest.h>

#include "bench/papers_card.h"

namespace sluice::bench {
namespace {

MoreJobsRow Two(char regime, size_t pool_of, size_t others, double at) {
  return {regime, "resnet50", 2, 2, pool_of, false, others, {at, at, at, at}};
}

MoreJobsRow More(char regime, size_t jobs, size_t pool_of, bool by_turns, double worst) {
  return {regime, "resnet50", 2, jobs, pool_of, by_turns, 0, {1.5, worst, 1.5, 1.5}};
}

const std::vector<MoreJobsRow>& Rows() {
  static const std::vector<MoreJobsRow> rows = {
      Two('A', 4, 0, 1.2),          More('A', 3, 4, false, 1.1),  More('A', 3, 4, true, 1.19),
      Two('A', 4, 1, 1.104),        Two('B', 3, 0, 1.4),          More('B', 3, 3, false, 1.39),
      More('B', 3, 3, true, 1.375), Two('B', 4, 0, 1.3),          More('B', 4, 4, false, 1.28),
      More('B', 4, 4, true, 1.31),  More('B', 4, 5, true, 0.001),
  };
  return rows;
}

TEST(PapersMoreJobs, EachIsSetAgainstTwoInItsOwnPools) {
  const auto rows = JsonOf(MoreJobsTable(Rows()))["rows"];
  ASSERT_EQ(rows.size(), Rows().size());
  EXPECT_EQ(rows[0]["less two at 1.10"], 0.0);
  EXPECT_NEAR(rows[2]["less two at 1.10"].get<double>(), -0.01, 1e-9);
  EXPECT_NEAR(rows[5]["less two at 1.10"].get<double>(), -0.01, 1e-9) << "of three's pools";
  EXPECT_NEAR(rows[8]["less two at 1.10"].get<double>(), -0.02, 1e-9) << "of four's";
  EXPECT_NEAR(rows[8]["less two at 1.25"].get<double>(), 0.2, 1e-9);
  EXPECT_EQ(rows[5]["bases"], "stay");
  EXPECT_EQ(rows[6]["bases"], "by turns");
  EXPECT_TRUE(rows[10]["less two at 1.10"].is_null()) << "nobody measured two there";
}

TEST(PapersMoreJobs, GoalsAreOfThoseWhoMayGoByTurns) {
  const PaperTable table = MoreJobsTable(Rows());
  ASSERT_EQ(table.goals.size(), 2u);
  EXPECT_NEAR(table.goals[0].value, -0.01, 1e-9);
  EXPECT_TRUE(table.goals[0].met());
  EXPECT_NEAR(table.goals[1].value, -0.025, 1e-9);
  EXPECT_FALSE(table.goals[1].met());
  EXPECT_NE(table.notes.back().find("where all bases stay: large batches -0.100 (resnet50 -0.100), "
                                    "small ones -0.020 (resnet50 -0.020)"),
            std::string::npos)
      << table.notes.back();
  EXPECT_NE(table.notes.back().find("beside the bases: large batches -0.004."), std::string::npos)
      << table.notes.back();
}

/// What is measured is what is said of it.
TEST(PapersMoreJobs, ByTurnsThreeGetWhatTwoGet) {
  const auto traces = ReadTraces();
  ASSERT_TRUE(traces.ok()) << traces.status().message();
  const auto card = Card::Load("v100-32", *traces, SharingVariant::kOccupancy);
  ASSERT_TRUE(card.ok()) << card.status().message();
  EXPECT_EQ(card->machine().sharing_variant, SharingVariant::kOccupancy);
  const auto run = [&](size_t jobs, const char* how) {
    return card->Run({std::vector<std::string>(jobs, "resnet50"), std::vector<uint64_t>(jobs, 2)},
                     how, uint64_t{824} << 20);  // three bases and one peak
  };
  const double two = run(2, "auto").throughput;
  EXPECT_GT(two, 1.4);
  const Together stay = run(3, "auto");
  EXPECT_LT(stay.throughput, two - 0.3);
  EXPECT_EQ(stay.shared_by.find("by turns"), std::string::npos);
  const Together turns = run(3, "auto by turns");
  EXPECT_GT(turns.throughput, two - 0.02);
  EXPECT_NE(turns.shared_by.find("2 bases in the pool, the others by turns"), std::string::npos)
      << turns.shared_by;
}

}  // namespace
}  // namespace sluice::bench
