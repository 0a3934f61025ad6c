// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/figures/figures_json.h"

#include <nlohmann/json.hpp>

namespace sluice::figures {
namespace {

using Json = nlohmann::ordered_json;

Json Of(const Histogram& histogram) {
  Json json;
  json["counts"] = histogram.counts();
  json["sum_ns"] = histogram.sum_ns();
  return json;
}

Json Of(const std::map<std::string, uint64_t, std::less<>>& counts) {
  Json json = Json::object();
  for (const auto& [reason, count] : counts) json[reason] = count;
  return json;
}

Json Amounts(const scheduler::Loan& loan, uint64_t unit_bytes) {
  Json json;
  json["bytes"] = loan.now * unit_bytes;
  json["lent_bytes"] = loan.lent * unit_bytes;
  json["returned_bytes"] = loan.returned * unit_bytes;
  json["loans"] = loan.times;
  return json;
}

Json LoanJson(const scheduler::Loan& loan, uint64_t unit_bytes) {
  Json json;
  json["lender"] = loan.lender;
  json["borrower"] = loan.borrower;
  json.update(Amounts(loan, unit_bytes));
  return json;
}

Json LoansJson(const scheduler::Loans& loans, uint64_t unit_bytes) {
  Json json = Json::array();
  for (const scheduler::Loan& loan : loans.pairs()) {
    if (loan.apart) json.push_back(LoanJson(loan, unit_bytes));
  }
  const scheduler::Loan rest = loans.rest();
  if (rest.lent > 0) json.push_back(LoanJson(rest, unit_bytes));
  return json;
}

}  // namespace

Json ToJson(JobId id, const JobFigures& job, const scheduler::Loans& loans, const Scale& scale) {
  Json json;
  json["iterations"] = job.iterations;
  json["lent_bytes"] = loans.lent(id) * scale.unit_bytes;
  json["borrowed_bytes"] = loans.borrowed(id) * scale.unit_bytes;
  json["lent_total_bytes"] = loans.lent_ever(id) * scale.unit_bytes;
  json["borrowed_total_bytes"] = loans.borrowed_ever(id) * scale.unit_bytes;
  json["gate_wait"] = Of(job.gate_wait);
  json["lease_wait"] = Of(job.lease_wait);
  json["waits"] = Of(job.waits);
  json["refusals"] = Of(job.refusals);
  json["claim_raises"] = job.claim_raises;
  json["deviations"] = job.deviations;
  json["deviations_by"] = Of(job.deviations_by);
  json["evictions"] = job.evictions;
  json["evictions_by"] = Of(job.evictions_by);
  json["returns"] = job.returns;
  json["swaps"] = job.swaps;
  json["events"] = Json::array();
  if (!scale.events) return json;
  for (const Event& event : job.events) {
    Json entry;
    entry["unix_ms"] = scale.UnixMs(event.t_ns);
    entry["kind"] = event.kind;
    entry["reason"] = event.reason;
    entry["text"] = event.text;
    json["events"].push_back(std::move(entry));
  }
  return json;
}

Json ToJson(const Figures& figures, uint64_t decisions, const Scale& scale) {
  Json json;
  Json& bounds = json["bounds_ns"];
  bounds["wait"] = kWaitBounds;
  bounds["decision"] = kDecisionBounds;
  bounds["service"] = kServiceBounds;
  bounds["handover"] = kHandoverBounds;
  bounds["reclaim"] = kReclaimBounds;
  json["decision"] = Of(figures.decision());
  json["service"] = Of(figures.service());
  json["handover"] = Of(figures.handover());
  json["reclaim"] = Of(figures.reclaim());
  json["policy_switches"] = figures.policy_switches();
  json["decisions"] = decisions;
  json["loans"] = LoansJson(figures.loans(), scale.unit_bytes);
  json["loans_over"] = Amounts(figures.loans().over(), scale.unit_bytes);
  return json;
}

}  // namespace sluice::figures
