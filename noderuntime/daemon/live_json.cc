// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/daemon/live_json.h"

#include <nlohmann/json.hpp>

#include "noderuntime/daemon/job_figures.h"
#include "noderuntime/figures/figures_json.h"

namespace sluice::noded {
namespace {

using Json = nlohmann::ordered_json;

Json JobJson(const flow::Flow& flow, flow::JobId id, const JobFacts& facts,
             const scheduler::Loans& loans, uint64_t now_ns) {
  const uint64_t unit = flow.options().unit_bytes;
  const scheduler::Job* known = flow.ledger().Find(id);
  const flow::FlowJob* job = flow.Find(id);
  const scheduler::Job none;
  const scheduler::Job& state = known != nullptr ? *known : none;
  Json json;
  json["id"] = id;
  json["name"] = facts.name;
  json["phase"] = PhaseOf(flow, id, facts.connected);
  json["held"] = state.held() * unit;
  json["live"] = LiveBytesOf(flow, id);
  json["claim"] = (state.past_gate() ? state.terms.claim : 0) * unit;
  json["limit"] = known != nullptr ? state.limit * unit : facts.limit_bytes;
  json["request"] = known != nullptr ? state.request * unit : facts.request_bytes;
  json["base"] = TotalUnits(state.base) * unit;
  json["lent"] = loans.lent(id) * unit;
  json["borrowed"] = loans.borrowed(id) * unit;
  const bool profiled = job != nullptr && job->published.has_value();
  json["gate"] = job != nullptr ? job->passed_gate : 0;
  json["gates"] = profiled ? job->published->plan.gates.size() : 0;
  json["iteration"] = job != nullptr ? job->iteration : 0;
  const bool waits = job != nullptr && job->waits_since_ns != 0;
  json["waits_ms"] = waits ? (now_ns - job->waits_since_ns) / 1'000'000 : 0;
  json["waits_for"] = waits ? flow.WhyWaiting(id) : "";
  json["code"] = waits ? ReasonName(flow.WaitsBecause(id)) : "";
  return json;
}

}  // namespace

std::string LiveJson(const flow::Flow& flow, const std::map<flow::JobId, JobFacts>& jobs,
                     const figures::Figures& figures, figures::HeldHistory* history,
                     int64_t unix_offset_ns, uint64_t since, uint64_t now_ns) {
  const uint64_t unit = flow.options().unit_bytes;
  const figures::Scale scale = {unit, unix_offset_ns};
  Json json;
  // The step that is not over yet comes again.
  json["seq"] = now_ns / figures::HeldHistory::kStepNs;
  json["now_ms"] = scale.UnixMs(now_ns);
  json["step_ms"] = figures::HeldHistory::kStepNs / 1'000'000;
  json["pool"] = flow.ledger().pool_units() * unit;
  json["budget"] = flow.budget() * unit;
  json["unit"] = unit;
  json["free"] = flow.ledger().free() * unit;
  json["policy"] = flow.policy_name();
  json["lanes"] = flow.options().policy.lanes;
  json["jobs"] = Json::array();
  for (const auto& [id, facts] : WithLedgers(flow, jobs)) {
    json["jobs"].push_back(JobJson(flow, id, facts, figures.loans(), now_ns));
  }
  json["loans"] = Json::array();
  for (const scheduler::Loan& loan : figures.loans().pairs()) {
    if (loan.now > 0) json["loans"].push_back({loan.lender, loan.borrower, loan.now * unit});
  }
  json["frames"] = Json::array();
  for (const figures::HeldHistory::Step* step : history->Since(since, now_ns)) {
    Json holdings = Json::array();
    for (const figures::Holding& holding : step->most) {
      holdings.push_back(holding.job);
      holdings.push_back(holding.units);
    }
    json["frames"].push_back(
        {scale.UnixMs(step->number * figures::HeldHistory::kStepNs), std::move(holdings)});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sluice::noded
