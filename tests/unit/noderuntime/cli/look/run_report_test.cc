// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/look/run_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/scheduler/log_writer.h"

namespace sluice::cli {
namespace {

using scheduler::EventKind;
using scheduler::LogWriter;

/// Two jobs whose peaks (10 and 8 units) do not fit in a pool of 16; the second borrows 4.
std::vector<scheduler::Record> TwoJobs() {
  LogWriter log(16);
  log.Parked(1, 2, 12, {{0, 2}});
  log.Parked(2, 2, 12, {{14, 2}});
  log.Gate(1, 10, {{2, 8}});
  log.Release(1, {{6, 4}}, 1);
  log.Fenced(1, 1);
  scheduler::Record& wait = log.Add(EventKind::kWait, 2);
  wait.reason = "memory";
  log.Reclaim(1, {{6, 4}});
  log.Gate(2, 8, {{6, 4}, {10, 2}});
  log.Release(1, {{2, 4}}, 2);
  log.Fenced(1, 2);
  log.Trough(1);
  log.Release(2, {{6, 6}}, 3);
  log.Fenced(2, 3);
  log.Trough(2);
  for (scheduler::Record& record : log.records) {
    if (record.event == EventKind::kAdmit)
      record.name = "train <" + std::to_string(record.job) + ">";
  }
  return log.records;
}

RunReport Report() {
  const Result<RunReport> report = ReportOf("run.log", TwoJobs());
  EXPECT_TRUE(report.ok()) << report.status().message();
  return *report;
}

TEST(RunReport, SaysWhatWasLentAndWhatSharingSaved) {
  const RunReport report = Report();
  EXPECT_EQ(report.pool_bytes, 16u * 1024);
  ASSERT_EQ(report.jobs.size(), 2u);
  EXPECT_EQ(report.jobs[0].peak_bytes, 10u * 1024);
  EXPECT_EQ(report.jobs[0].lent_bytes, 4u * 1024);
  EXPECT_EQ(report.jobs[1].borrowed_bytes, 4u * 1024);
  EXPECT_EQ(report.lent_bytes, 4u * 1024);
  EXPECT_EQ(report.peaks_bytes, 18u * 1024);
  EXPECT_LE(report.most_held_bytes, report.pool_bytes);
  EXPECT_EQ(report.most_jobs, 2u);
  EXPECT_EQ(report.fit_without, 1u) << "10 and 8 units do not both fit in 16";
  EXPECT_EQ(report.violations, 0u);
}

TEST(RunReport, TimesAreThoseOfTheLog) {
  const RunReport report = Report();
  EXPECT_GT(report.together_ns, 0u);
  EXPECT_LT(report.together_ns, report.busy_ns);
  EXPECT_LE(report.busy_ns, report.lasted_ns);
  // From its gate 0 to its trough, seven records of 10 ns.
  EXPECT_EQ(report.jobs[0].iteration_median_ns, 80u);
  EXPECT_EQ(report.jobs[1].waited_ns, 20u);
  EXPECT_EQ(report.jobs[1].figures.waits.at("memory"), 1u);
  ASSERT_EQ(report.policies.size(), 1u);
  EXPECT_EQ(report.policies[0].second, report.lasted_ns);
}

TEST(RunReport, AsTextJsonAndPageItIsTheSame) {
  const RunReport report = Report();
  const std::string text = ReportText(report);
  EXPECT_NE(text.find("4.0 KiB were lent within iterations"), std::string::npos) << text;
  EXPECT_NE(text.find("every promise was kept"), std::string::npos);
  const auto json = nlohmann::json::parse(ReportJson(report));
  EXPECT_EQ(json["lent_bytes"], 4 * 1024);
  EXPECT_EQ(json["jobs"][1]["waits"]["memory"], 1);
  EXPECT_EQ(json["saved"]["fit_without"], 1);
  const std::string html = ReportHtml(report);
  EXPECT_NE(html.find("train &lt;1&gt;"), std::string::npos);
  EXPECT_EQ(html.find("train <1>"), std::string::npos) << "names are texts, not markup";
  EXPECT_EQ(html.find("http"), std::string::npos) << "nothing from elsewhere";
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_NE(html.find("<polygon"), std::string::npos);
}

TEST(RunReport, NamesAreWhatTheyAreAsFarAsThatIsText) {
  RunReport report = Report();
  report.jobs[0].name = "trénöm \xF0\x9F\x90\x98 \x01 cut \xC3";
  const std::string html = ReportHtml(report);
  EXPECT_NE(html.find("trénöm \xF0\x9F\x90\x98 ? cut \xEF\xBF\xBD"), std::string::npos) << html;
}

TEST(RunReport, WhatIsNoLogIsNamed) {
  EXPECT_NE(ReportOf("x.log", {}).status().message().find("x.log"), std::string::npos);
  std::vector<scheduler::Record> records = TwoJobs();
  records.erase(records.begin());
  EXPECT_EQ(ReportOf("x.log", records).status().code(), StatusCode::kInvalidArgument);
}

TEST(RunReport, ABrokenPromiseIsSaid) {
  std::vector<scheduler::Record> records = TwoJobs();
  LogWriter more(16);
  records.push_back(more.Grant(2, {{0, 1}}));
  records.back().t_ns = records[records.size() - 2].t_ns + 10;
  const Result<RunReport> report = ReportOf("run.log", records);
  ASSERT_TRUE(report.ok());
  EXPECT_GT(report->violations, 0u);
  EXPECT_NE(ReportText(*report).find("broken"), std::string::npos);
}

}  // namespace
}  // namespace sluice::cli
