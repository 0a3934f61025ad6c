// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gateway/metrics.h"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <map>
#include <set>
#include <sstream>

#include "noderuntime/gateway/metric_table.h"

namespace sluice::gateway {
namespace {

std::string Text(const std::vector<GpuView>& gpus) {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, MetricsOf("n1", gpus));
  return text.str();
}
bool Has(const std::string& text, const std::string& line) {
  return text.find("\n" + line + "\n") != std::string::npos;
}
GpuView Parsed(const std::string& json) {
  const Result<GpuView> gpu = ParseStatus(json);
  EXPECT_TRUE(gpu.ok());
  return *gpu;
}

/// All that a daemon of this version tells.
constexpr char kStatus[] = R"({"version": "0.2.0", "gpu": 0, "gpu_uuid": "GPU-a",
  "started_unix_ms": 1700000000500, "gpu_bytes": 200, "pool_bytes": 100, "budget_bytes": 90,
  "free_bytes": 40, "reserve_bytes": 10, "largest_free_bytes": 30, "outside_reserve_bytes": 8,
  "outside_bytes": 5, "nvml": {"used_bytes": 120, "drift_bytes": -7},
  "host_tier": {"capacity_bytes": 50, "used_bytes": 20}, "policy": "flow", "lanes": 2,
  "claims": "steps", "draining": false, "bypassed": {"pods": 2, "others": 1},
  "keeper": {"pid": null, "losses": 3, "missing_ms": 1500},
  "sessions": {"1.4": 2}, "daemon": {"fences_pending": 3},
  "figures": {"bounds_ns": {"wait": [1000000], "decision": [1000], "service": [1000],
      "handover": [1000], "reclaim": [1000]},
    "decision": {"counts": [1, 2], "sum_ns": 5000}, "service": {"counts": [0, 0], "sum_ns": 0},
    "handover": {"counts": [0, 0], "sum_ns": 0}, "reclaim": {"counts": [0, 0], "sum_ns": 0},
    "policy_switches": 1, "decisions": 77, "adopted": 0,
    "loans": [{"lender": 7, "borrower": 8, "bytes": 4, "lent_bytes": 14, "returned_bytes": 10,
      "loans": 3}, {"lender": 0, "borrower": 0, "bytes": 0, "lent_bytes": 1, "returned_bytes": 1,
      "loans": 1}]},
  "jobs": [{"id": 7, "name": "team-a/train/main", "phase": "running", "request_bytes": 10,
      "limit_bytes": 50, "claim_bytes": 40, "base_bytes": 6, "held_bytes": 30, "away_bytes": 2,
      "unfenced_bytes": 3, "spare_bytes": 1, "peak_held_bytes": 44, "live_bytes": 28,
      "outside_bytes": 5, "launches": 99, "profile": {"credit_ns": 2000000, "iteration_ns": 25000000},
      "run_ahead_ns": 1000000, "waiting": {"since_ms": 1500, "reason": "its turn", "code": "turn"},
      "figures": {"iterations": 12, "lent_bytes": 4, "borrowed_bytes": 0, "lent_total_bytes": 14,
        "borrowed_total_bytes": 0, "claim_raises": 1, "deviations": 2, "evictions": 3, "returns": 2, "swaps": 4,
        "deviations_by": {"cycle": 2}, "evictions_by": {"memory": 3},
        "waits": {"turn": 5}, "refusals": {"over-limit": 1},
        "gate_wait": {"counts": [4, 1], "sum_ns": 3000000},
        "lease_wait": {"counts": [0, 0], "sum_ns": 0}}},
    {"id": 8, "name": "train \"x\"", "phase": "parked", "held_bytes": 20,
      "figures": {"borrowed_bytes": 4, "lent_bytes": 0}}],
  "ended": [{"id": 6, "name": "team-b/old/main", "phase": "ended", "held_bytes": 0,
      "figures": {"iterations": 1000}}]})";

TEST(Metrics, OfEveryRowOfTheTablesAreServedForAFullStatus) {
  std::set<std::string> served;
  GpuView gpu = Parsed(kStatus);
  gpu.answer_age_ns = 0;  // of the gateway's own
  for (const auto& family : MetricsOf("n1", {gpu})) {
    EXPECT_TRUE(served.insert(family.name).second) << family.name;
    EXPECT_FALSE(family.metric.empty()) << family.name;
  }
  for (const metrics::Group& group : MetricGroups()) {
    for (const metrics::Metric& metric : group.metrics) {
      EXPECT_TRUE(served.contains(metric.name)) << metric.name;
      served.erase(metric.name);
    }
  }
  EXPECT_TRUE(served.empty()) << *served.begin();
}

TEST(Metrics, SayWhatTheStatusSays) {
  const std::string text = Text({Parsed(kStatus)});
  const std::string gpu = R"({node="n1",gpu="0",UUID="GPU-a")";
  EXPECT_TRUE(Has(text, R"(sluice_up{node="n1",gpu="0"} 1)")) << text;
  const std::pair<const char*, const char*> lines[] = {
      {"sluice_pool_bytes", "} 100"},
      {"sluice_pool_held_bytes", "} 50"},
      {"sluice_pool_free_bytes", "} 40"},
      {"sluice_pool_reserve_bytes", "} 10"},
      {"sluice_pool_fragmentation_ratio", "} 0.25"},
      {"sluice_drift_bytes", "} -7"},
      {"sluice_daemon_start_time_seconds", "} 1700000000.5"},
      {"sluice_build_info", R"(,version="0.2.0"} 1)"},
      {"sluice_policy_info", R"(,policy="flow",lanes="2",claims="steps"} 1)"},
      {"sluice_sessions", R"(,version="1.4"} 2)"},
      {"sluice_jobs", R"(,phase="running"} 1)"},
      {"sluice_jobs", R"(,phase="dying"} 0)"},
      {"sluice_jobs", R"(,phase="ended"} 1)"},
      {"sluice_draining", "} 0"},
      {"sluice_fences_pending", "} 3"},
      {"sluice_keeper_up", "} 0"},
      {"sluice_keeper_losses_total", "} 3"},
      {"sluice_bypassed_processes_total", R"(,of="pod"} 2)"},
      {"sluice_bypassed_processes_total", R"(,of="other"} 1)"},
      {"sluice_decision_seconds_bucket", R"(,le="1e-06"} 1)"}};
  for (const auto& [name, rest] : lines) {
    EXPECT_TRUE(Has(text, name + gpu + rest)) << name << gpu << rest << "\n" << text;
  }
  const std::string job = gpu + R"(,namespace="team-a",pod="train",container="main",id="7")";
  for (const std::string& line :
       {"sluice_job_held_bytes" + job + "} 30", "sluice_job_host_tier_bytes" + job + "} 2",
        "sluice_job_credit_seconds" + job + "} 0.002",
        "sluice_job_iteration_seconds" + job + "} 0.025",
        "sluice_job_waiting_seconds" + job + R"(,reason="turn"} 1.5)",
        "sluice_job_phase" + job + R"(,phase="running"} 1)",
        "sluice_job_waits_total" + job + R"(,reason="turn"} 5)",
        "sluice_job_refusals_total" + job + R"(,reason="over-limit"} 1)",
        "sluice_job_deviations_total" + job + R"(,reason="cycle"} 2)",
        "sluice_job_deviations_total" + job + R"(,reason="launches"} 0)",
        "sluice_job_evictions_total" + job + R"(,reason="memory"} 3)",
        "sluice_job_gate_wait_seconds_bucket" + job + R"(,le="0.001"} 4)",
        "sluice_job_gate_wait_seconds_count" + job + "} 5"}) {
    EXPECT_TRUE(Has(text, line)) << line << "\n" << text;
  }
  // A name that a user chose, and one of a job that is over.
  EXPECT_TRUE(Has(text, "sluice_job_held_bytes" + gpu +
                            R"(,namespace="",pod="train \"x\"",container="",id="8"} 20)"));
  EXPECT_TRUE(Has(text, "sluice_job_iterations_total" + gpu +
                            R"(,namespace="team-b",pod="old",container="main",id="6"} 1000)"));
  EXPECT_TRUE(Has(
      text, std::string("sluice_loan_bytes") +
                R"({node="n1",gpu="0",lender_namespace="team-a",lender_pod="train",lender_id="7",)"
                R"(borrower_namespace="",borrower_pod="train \"x\"",borrower_id="8"} 4)"))
      << text;
}

TEST(Metrics, WhatADaemonDoesNotTellIsNo0) {
  const std::string down = Text({GpuView()});
  EXPECT_TRUE(Has(down, R"(sluice_up{node="n1",gpu="0"} 0)")) << down;
  EXPECT_EQ(down.find("sluice_pool"), std::string::npos);
  EXPECT_EQ(down.find("sluice_bypassed"), std::string::npos);
  EXPECT_EQ(down.find("sluice_answer_age"), std::string::npos);
  GpuView silent;
  silent.there = true;
  silent.answer_age_ns = 31'500'000'000;
  EXPECT_TRUE(Has(Text({silent}), R"(sluice_answer_age_seconds{node="n1",gpu="0"} 31.5)"));
  // One from before these figures.
  const auto families = MetricsOf("n1", {Parsed(R"({"version": "0.1.0", "gpu_uuid": "GPU-a",
      "pool_bytes": 9, "free_bytes": 9,
      "jobs": [{"id": 1, "name": "a", "phase": "parked", "held_bytes": 0}]})")});
  std::set<std::string> names;
  for (const auto& family : families) {
    names.insert(family.name);
    if (family.name == "sluice_jobs") {
      EXPECT_EQ(family.metric.size(), 9u) << "whether jobs ended is not known";
    }
  }
  EXPECT_EQ(names, (std::set<std::string>{"sluice_up", "sluice_scrape_seconds", "sluice_pool_bytes",
                                          "sluice_pool_held_bytes", "sluice_pool_free_bytes",
                                          "sluice_build_info", "sluice_jobs",
                                          "sluice_job_held_bytes", "sluice_job_phase"}));
}

TEST(Metrics, OfThoseThatEndedTheLatestHaveSeriesAndWhoStillLends) {
  std::string ended;
  for (int id = 1; id <= 40; ++id) {
    ended += (id == 1 ? "" : ",") + std::string(R"({"id": )") + std::to_string(id) +
             R"(, "name": "a/b/c", "figures": {"iterations": 3, "lent_bytes": )" +
             (id == 2 ? "5" : "0") + "}}";
  }
  const GpuView gpu = Parsed(R"({"jobs": [], "figures": {"loans": [
      {"lender": 2, "borrower": 1, "bytes": 5}]}, "ended": [)" +
                             ended + "]}");
  const std::string text = Text({gpu});
  for (const auto& family : MetricsOf("n1", {gpu})) {
    if (family.name == "sluice_job_iterations_total") {
      EXPECT_EQ(family.metric.size(), kMostEnded + 1);
    }
  }
  EXPECT_NE(text.find(R"(id="40"} 3)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"(id="33"} 3)"), std::string::npos);
  EXPECT_EQ(text.find(R"(id="32"} 3)"), std::string::npos);
  EXPECT_NE(text.find(R"(id="2"} 5)"), std::string::npos);
  EXPECT_NE(text.find(R"(borrower_pod="b",borrower_id="1"} 5)"), std::string::npos)
      << "its name is known for all that";
}

TEST(Metrics, NoSeriesIsThereTwiceAndTheirNumberIsBounded) {
  std::string jobs;
  for (int i = 0; i < 2000; ++i) {
    jobs += (i == 0 ? "" : ",") + std::string(R"({"id": )") + std::to_string(i / 2) +
            R"(, "name": "a", "held_bytes": 1, "figures": {"lent_bytes": 2, "borrowed_bytes": 3}})";
  }
  std::string loans;
  for (int i = 0; i < 2000; ++i) {
    loans += (i == 0 ? "" : ",") + std::string(R"({"lender": )") + std::to_string(i / 2) +
             R"(, "borrower": 1, "bytes": 1})";
  }
  const auto families =
      MetricsOf("n1", {Parsed(R"({"pool_bytes": 1, "jobs": [)" + jobs + R"(], "ended": [)" + jobs +
                              R"(], "figures": {"loans": [)" + loans + "]}}")});
  for (const auto& family : families) {
    std::set<std::string> seen;
    for (const auto& sample : family.metric) {
      std::string labels;
      for (const auto& label : sample.label) labels += label.name + "=" + label.value + ",";
      EXPECT_TRUE(seen.insert(labels).second) << family.name << labels;
    }
    const std::map<std::string, double> sums = {{"sluice_job_held_bytes", 1'000},
                                                {"sluice_job_lent_bytes", 2'000},
                                                {"sluice_job_borrowed_bytes", 3'000}};
    if (const auto expected = sums.find(family.name); expected != sums.end()) {
      EXPECT_EQ(seen.size(), kMostJobs + 1) << "the rest is one";
      double sum = 0;
      for (const auto& sample : family.metric) sum += sample.gauge.value;
      EXPECT_EQ(sum, expected->second) << family.name;
    }
    if (family.name == "sluice_loan_bytes") {
      EXPECT_EQ(seen.size(), kMostLoans);
    }
    if (family.name == "sluice_pool_held_bytes") {
      EXPECT_EQ(family.metric.front().gauge.value, 2000) << "sums are of all";
    }
  }
}

}  // namespace
}  // namespace sluice::gateway
