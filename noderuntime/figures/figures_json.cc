// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/figures/figures_json.h"

#include <algorithm>
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

Json LoanJson(const scheduler::Loan& loan, uint64_t unit_bytes) {
  Json json;
  json["lender"] = loan.lender;
  json["borrower"] = loan.borrower;
  json["bytes"] = loan.now * unit_bytes;
  json["lent_bytes"] = loan.lent * unit_bytes;
  json["returned_bytes"] = loan.returned * unit_bytes;
  json["loans"] = loan.times;
  return json;
}

Json LoansJson(const scheduler::Loans& loans, uint64_t unit_bytes) {
  std::vector<scheduler::Loan> pairs = loans.pairs();
  // The rest may hold a loan of the moment: the sums over lenders and over pairs are one sum.
  scheduler::Loan rest;
  if (pairs.size() > kMostPairs) {
    const auto keep = pairs.begin() + kMostPairs;
    std::nth_element(pairs.begin(), keep, pairs.end(),
                     [](const auto& a, const auto& b) { return a.lent > b.lent; });
    for (auto at = keep; at != pairs.end(); ++at) {
      rest.now += at->now;
      rest.lent += at->lent;
      rest.returned += at->returned;
      rest.times += at->times;
    }
    pairs.erase(keep, pairs.end());
  }
  Json json = Json::array();
  for (const scheduler::Loan& loan : pairs) {
    if (loan.lender != scheduler::kNoJob) {
      json.push_back(LoanJson(loan, unit_bytes));
      continue;
    }
    rest.now += loan.now;
    rest.lent += loan.lent;
    rest.returned += loan.returned;
    rest.times += loan.times;
  }
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
  json["evictions"] = job.evictions;
  json["returns"] = job.returns;
  json["events"] = Json::array();
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
  return json;
}

}  // namespace sluice::figures
