// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/figures/figures_json.h"

#include <gtest/gtest.h>

#include <map>
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

TEST(FiguresJson, SwapsAreApartFromEvictions) {
  Figures figures(8);
  scheduler::Record evict;
  evict.event = scheduler::EventKind::kEvict;
  evict.job = 1;
  for (const char* reason : {"turn", "turn", "memory"}) {
    evict.reason = reason;
    figures.Apply(evict);
  }
  const ordered_json json = ToJson(1, figures.Of(1), figures.loans(), kScale);
  EXPECT_EQ(json["swaps"], 2);
  EXPECT_EQ(json["evictions"], 1);
  EXPECT_EQ(json["evictions_by"].size(), 1u);
}

TEST(FiguresJson, EventsHaveTheTimeOfDay) {
  Figures figures(8);
  figures.Told(1, 2'000'000, "", "a line");
  const ordered_json json = ToJson(1, figures.Of(1), figures.loans(), kScale);
  EXPECT_EQ(json["events"][0]["unix_ms"], 1'002);
  EXPECT_EQ(json["events"][0]["text"], "a line");
  Scale without = kScale;
  without.events = false;
  EXPECT_TRUE(ToJson(1, figures.Of(1), figures.loans(), without)["events"].empty());
}

/// By the jobs on both sides; the sums of what was lent and of what is.
struct Told {
  std::map<std::pair<int, int>, uint64_t> lent;
  uint64_t sum = 0;
  uint64_t now = 0;
};

Told TellOf(const Figures& figures) {
  Told told;
  const ordered_json json = ToJson(figures, 0, kScale);
  for (const ordered_json& loan : json["loans"]) {
    told.lent[{loan["lender"], loan["borrower"]}] = loan["lent_bytes"];
    told.sum += loan["lent_bytes"].get<uint64_t>();
    told.now += loan["bytes"].get<uint64_t>();
  }
  told.sum += json["loans_over"]["lent_bytes"].get<uint64_t>();
  return told;
}

TEST(FiguresJson, ManyPairsAreBoundedAndNoneOfTheirCountersEverFalls) {
  Figures figures(2048);
  LogWriter log(2048);
  size_t applied = 0;
  const auto apply = [&] {
    for (; applied < log.records.size(); ++applied) figures.Apply(log.records[applied]);
  };
  constexpr scheduler::JobId kJobs = 400;
  log.Parked(1, 2, 2000, {{0, 2}});
  log.Gate(1, 1900, {{4, 1800}});
  apply();
  Told before;
  uint64_t lent = 0;
  scheduler::ReleaseId release = 0;
  const auto lend = [&](scheduler::JobId job, scheduler::Units units) {
    const scheduler::Extents extents = {{4 * job, units}};
    log.Release(1, extents, ++release);
    log.Fenced(1, release);
    log.Reclaim(1, extents);
    log.Grant(job, extents);
    apply();
    lent += units * kScale.unit_bytes;
    const Told told = TellOf(figures);
    EXPECT_EQ(told.sum, lent);
    EXPECT_EQ(told.now, figures.loans().lent(1) * kScale.unit_bytes);
    for (const auto& [pair, bytes] : before.lent) {
      const auto found = told.lent.find(pair);
      ASSERT_TRUE(found != told.lent.end()) << pair.second;
      EXPECT_GE(found->second, bytes) << pair.second;
    }
    before = told;
  };
  for (scheduler::JobId job = 2; job <= kJobs; ++job) lend(job, 1);
  EXPECT_EQ(before.lent.size(), scheduler::Loans::kMostApart + 1);
  EXPECT_EQ(before.lent.begin()->first, std::pair(0, 0));
  // The last ones come to have lent the most.
  for (scheduler::JobId job = kJobs - 9; job <= kJobs; ++job) lend(job, 3);
  EXPECT_EQ(before.lent.size(), scheduler::Loans::kMostApart + 1);
}

TEST(FiguresJson, WhatAForgottenPairLentIsNotLentAgain) {
  Figures figures = Lending(5);
  ASSERT_EQ(TellOf(figures).lent.size(), 1u);
  figures.End(2, "borrower", 1);
  figures.Prune(2 + Figures::kEndedForNs);
  const ordered_json json = ToJson(figures, 0, kScale);
  EXPECT_TRUE(json["loans"].empty()) << json["loans"];
  EXPECT_EQ(json["loans_over"]["lent_bytes"], 5 * 1024);
  EXPECT_EQ(json["loans_over"]["returned_bytes"], 5 * 1024);
  EXPECT_EQ(json["loans_over"]["loans"], 1);
}

}  // namespace
}  // namespace sluice::figures
