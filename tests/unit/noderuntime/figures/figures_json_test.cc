// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/figures/figures_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/scheduler/log_writer.h"

namespace sluice::figures {
namespace {

using nlohmann::ordered_json;
using scheduler::LogWriter;

constexpr Scale kScale = {1024, 1'000'000'000};

/// Job 1 lends `lent` units to job 2.
Figures Lending(scheduler::Units lent) {
  LogWriter log(64);
  log.Parked(1, 2, 30, {{0, 2}});
  log.Parked(2, 2, 30, {{2, 2}});
  log.Gate(1, 20, {{4, 10}});
  log.Gate(2, 20);
  log.Release(1, {{4, lent}}, 1);
  log.Fenced(1, 1);
  log.Reclaim(1, {{4, lent}});
  log.Grant(2, {{4, lent}});
  Figures figures(64);
  for (const scheduler::Record& record : log.records) figures.Apply(record);
  return figures;
}

TEST(FiguresJson, AmountsAreBytesOnBothSidesOfALoan) {
  const Figures figures = Lending(5);
  const ordered_json lender = ToJson(1, figures.Of(1), figures.loans(), kScale);
  const ordered_json borrower = ToJson(2, figures.Of(2), figures.loans(), kScale);
  EXPECT_EQ(lender["lent_bytes"], 5 * 1024);
  EXPECT_EQ(lender["lent_total_bytes"], 5 * 1024);
  EXPECT_EQ(borrower["borrowed_bytes"], 5 * 1024);
  EXPECT_EQ(borrower["lent_bytes"], 0);
  EXPECT_EQ(lender["iterations"], 1);
  EXPECT_EQ(lender["gate_wait"]["counts"].size(), std::size(kWaitBounds) + 1);
  const ordered_json node = ToJson(figures, 9, kScale);
  EXPECT_EQ(node["decisions"], 9);
  ASSERT_EQ(node["loans"].size(), 1u);
  EXPECT_EQ(node["loans"][0]["lender"], 1);
  EXPECT_EQ(node["loans"][0]["borrower"], 2);
  EXPECT_EQ(node["loans"][0]["bytes"], 5 * 1024);
  EXPECT_EQ(node["loans"][0]["returned_bytes"], 0);
  EXPECT_EQ(node["bounds_ns"]["wait"].size(), std::size(kWaitBounds));
}

TEST(FiguresJson, EventsHaveTheTimeOfDay) {
  Figures figures(8);
  figures.Told(1, 2'000'000, "a line");
  const ordered_json json = ToJson(1, figures.Of(1), figures.loans(), kScale);
  EXPECT_EQ(json["events"][0]["unix_ms"], 1'002);
  EXPECT_EQ(json["events"][0]["text"], "a line");
}

TEST(FiguresJson, ManyPairsAreBoundedAndTheirSumStays) {
  Figures figures(1024);
  LogWriter log(1024);
  constexpr scheduler::JobId kJobs = 400;
  log.Parked(1, 2, 900, {{0, 2}});
  log.Gate(1, 900, {{4, 900}});
  for (scheduler::JobId job = 2; job <= kJobs; ++job) {
    log.Release(1, {{2 + 2 * job, 2}}, job);
    log.Fenced(1, job);
    log.Reclaim(1, {{2 + 2 * job, 2}});
    log.Grant(job, {{2 + 2 * job, job == 7 ? 1u : 2u}});
  }
  for (const scheduler::Record& record : log.records) figures.Apply(record);
  const ordered_json loans = ToJson(figures, 0, kScale)["loans"];
  ASSERT_EQ(loans.size(), kMostPairs + 1);
  uint64_t bytes = 0;
  for (const ordered_json& loan : loans) bytes += loan["bytes"].get<uint64_t>();
  EXPECT_EQ(bytes, 1024u * figures.loans().lent(1));
  EXPECT_EQ(loans.back()["lender"], 0);
  EXPECT_EQ(loans.back()["borrower"], 0);
}

}  // namespace
}  // namespace sluice::figures
