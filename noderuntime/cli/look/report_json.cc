// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <nlohmann/json.hpp>

#include "noderuntime/cli/look/run_report.h"

namespace sluice::cli {
namespace {

using Json = nlohmann::ordered_json;

Json JobJson(const ReportedJob& job) {
  Json json;
  json["id"] = job.id;
  json["name"] = job.name;
  json["peak_bytes"] = job.peak_bytes;
  json["limit_bytes"] = job.limit_bytes;
  json["held_over_peak"] = job.held_over_peak;
  json["iterations"] = job.iterations;
  json["iteration_median_ns"] = job.iteration_median_ns;
  json["iteration_p90_ns"] = job.iteration_p90_ns;
  json["there_ns"] = job.there_ns;
  json["inside_ns"] = job.inside_ns;
  json["waited_ns"] = job.waited_ns;
  json["lent_bytes"] = job.lent_bytes;
  json["borrowed_bytes"] = job.borrowed_bytes;
  json["waits"] = Json::object();
  for (const auto& [reason, count] : job.figures.waits) json["waits"][reason] = count;
  json["refusals"] = Json::object();
  for (const auto& [reason, count] : job.figures.refusals) json["refusals"][reason] = count;
  json["claim_raises"] = job.figures.claim_raises;
  json["deviations"] = job.figures.deviations;
  json["evictions"] = job.figures.evictions;
  return json;
}

}  // namespace

std::string ReportJson(const RunReport& report) {
  Json json;
  json["source"] = report.source;
  json["pool_bytes"] = report.pool_bytes;
  json["unit_bytes"] = report.unit_bytes;
  json["records"] = report.records;
  json["lasted_ns"] = report.lasted_ns;
  json["policies"] = Json::array();
  for (const auto& [policy, ns] : report.policies) {
    json["policies"].push_back({{"policy", policy}, {"ns", ns}});
  }
  json["saved"]["peaks_bytes"] = report.peaks_bytes;
  json["saved"]["most_held_bytes"] = report.most_held_bytes;
  json["saved"]["most_jobs"] = report.most_jobs;
  json["saved"]["fit_without"] = report.fit_without;
  json["saved"]["together_ns"] = report.together_ns;
  json["saved"]["busy_ns"] = report.busy_ns;
  json["lent_bytes"] = report.lent_bytes;
  json["violations"] = report.violations;
  json["jobs"] = Json::array();
  for (const ReportedJob& job : report.jobs) json["jobs"].push_back(JobJson(job));
  json["loans"] = Json::array();
  for (const scheduler::Loan& loan : report.loans) {
    json["loans"].push_back({{"lender", loan.lender},
                             {"borrower", loan.borrower},
                             {"lent_bytes", loan.lent * report.unit_bytes},
                             {"loans", loan.times}});
  }
  json["series"] = Json::array();
  for (const scheduler::AuditSample& sample : report.series) {
    Json held = Json::object();
    for (const auto& [job, units] : sample.held) {
      held[std::to_string(job)] = units * report.unit_bytes;
    }
    json["series"].push_back(
        {{"t_ns", sample.t_ns - std::min(sample.t_ns, report.began_ns)}, {"held_bytes", held}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace sluice::cli
