// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/daemon/status_json.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "common/nvml.h"
#include "noderuntime/daemon/job_figures.h"
#include "noderuntime/figures/figures_json.h"

namespace sluice::noded {
namespace {

using Json = nlohmann::ordered_json;

const char* KindName(scheduler::RequestKind kind) {
  switch (kind) {
    case scheduler::RequestKind::kNewcomer:
      return "begin";
    case scheduler::RequestKind::kGate0:
      return "iteration";
    case scheduler::RequestKind::kGate:
      return "gate";
    case scheduler::RequestKind::kLease:
      return "lease";
    case scheduler::RequestKind::kBringBack:
    case scheduler::RequestKind::kSwapIn:
      return "bring-back";
  }
  return "unknown";
}

Json Waiting(const flow::Flow& flow, const flow::FlowJob& job, uint64_t now_ns) {
  if (job.waits_since_ns == 0) return nullptr;
  Json json;
  json["kind"] = "admission";
  for (const scheduler::Request& request : flow.requests()) {
    if (request.job != job.spec.id) continue;
    json["kind"] = KindName(request.kind);
    json["bytes"] = request.units * flow.options().unit_bytes;
  }
  json["since_ms"] = (now_ns - job.waits_since_ns) / 1'000'000;
  json["reason"] = flow.WhyWaiting(job.spec.id);
  json["code"] = ReasonName(flow.WaitsBecause(job.spec.id));
  return json;
}

Json ProfileOf(const flow::FlowJob& job) {
  if (!job.published.has_value()) return nullptr;
  const scheduler::Profile& profile = job.published->profile;
  Json json;
  json["id"] = job.published->id;
  json["period"] = profile.period;
  json["window"] = profile.window;
  json["gates"] = job.published->plan.gates.size();
  json["peak_bytes"] = profile.peak_bytes;
  json["base_bytes"] = profile.base_bytes;
  json["iteration_ns"] = profile.iteration_ns;
  json["credit_ns"] = job.published->plan.credit_ns;
  return json;
}

/// Bytes by family; what is only counted stands beside what is charged.
Json Outside(const flow::Flow& flow, flow::JobId id, const flow::FlowJob* job) {
  Json json = Json::object();
  for (const auto& [family, bytes] : flow.outside().families(id)) {
    if (bytes > 0) json[flow::FamilyName(family)] = bytes;
  }
  if (job == nullptr) return json;
  for (const auto& [family, bytes] : job->counted) {
    if (bytes > 0 && family < protocol::kFirstUnseenFamily) json[flow::FamilyName(family)] = bytes;
  }
  return json;
}

uint64_t Counted(const flow::FlowJob* job, protocol::Family family) {
  if (job == nullptr) return 0;
  const auto found = job->counted.find(static_cast<uint32_t>(family));
  return found == job->counted.end() ? 0 : found->second;
}

Json Tuning(const tuner::Tuner& tuner, uint64_t unit) {
  Json json;
  json["state"] = tuner::StateName(tuner.state());
  json["candidates"] = Json::array();
  for (const tuner::Tuner::Candidate& candidate : tuner.candidates()) {
    Json entry;
    entry["policy"] = candidate.way.policy;
    entry["lanes"] = candidate.way.lanes;
    entry["claims"] = scheduler::ClaimsName(candidate.way.claims);
    const flow::Units soft = candidate.way.soft_budget;
    entry["soft_budget_bytes"] = soft != 0 ? Json(soft * unit) : Json(nullptr);
    entry["credit_parts"] = candidate.way.credit_parts;
    entry["residents"] =
        candidate.way.residents != 0 ? Json(candidate.way.residents) : Json(nullptr);
    entry["simulated_over_temporal"] = candidate.predicted;
    entry["measured_gpu_share"] = candidate.measured;
    json["candidates"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace

void ServiceTimes::Add(uint64_t ns) {
  ++count_;
  total_ns_ += ns;
  // Below 8 ns every value has its own bucket, above each doubling has eight.
  const size_t doubling = ns < kPerDoubling ? 0 : static_cast<size_t>(std::bit_width(ns)) - 3;
  const size_t within = doubling == 0 ? ns : (ns >> (doubling - 1)) - kPerDoubling;
  ++buckets_[doubling * kPerDoubling + within];
}

uint64_t ServiceTimes::median_ns() const {
  uint64_t seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen * 2 < count_ || seen == 0) continue;
    const size_t doubling = i / kPerDoubling;
    return doubling == 0 ? i : (kPerDoubling + i % kPerDoubling) << (doubling - 1);
  }
  return 0;
}

std::string PhaseOf(const flow::Flow& flow, flow::JobId id, bool connected) {
  if (const scheduler::Job* known = flow.ledger().Find(id)) return PhaseName(known->phase);
  if (flow.Find(id) != nullptr) return "waiting";
  if (flow.Rests(id)) return "resting";
  return connected ? "connecting" : "registered";
}

std::map<flow::JobId, JobFacts> WithLedgers(const flow::Flow& flow,
                                            std::map<flow::JobId, JobFacts> jobs) {
  for (const scheduler::Job& job : flow.ledger().jobs()) {
    if (job.id != scheduler::kBeyondBudget) jobs.try_emplace(job.id, JobFacts{.name = job.name});
  }
  return jobs;
}

namespace {

Json JobJson(const flow::Flow& flow, flow::JobId id, const JobFacts& facts,
             const figures::Figures& figures, const figures::Scale& scale, uint64_t now_ns) {
  const uint64_t unit = flow.options().unit_bytes;
  Json entry;
  entry["id"] = id;
  entry["name"] = facts.name;
  entry["pid"] = facts.pid;
  entry["processes"] = facts.processes;
  const scheduler::Job* known = flow.ledger().Find(id);
  const flow::FlowJob* job = flow.Find(id);
  entry["phase"] = PhaseOf(flow, id, facts.connected);
  const scheduler::Job none;
  const scheduler::Job& state = known != nullptr ? *known : none;
  entry["request_bytes"] = known != nullptr ? state.request * unit : facts.request_bytes;
  entry["limit_bytes"] = known != nullptr ? state.limit * unit : facts.limit_bytes;
  entry["claim_bytes"] = (state.past_gate() ? state.terms.claim : 0) * unit;
  entry["base_bytes"] = TotalUnits(state.base) * unit;
  entry["held_bytes"] = state.held() * unit;
  entry["away_bytes"] = TotalUnits(state.away) * unit;
  entry["evictions"] = job != nullptr ? job->evictions : 0;
  entry["unfenced_bytes"] = state.unfenced * unit;
  entry["spare_bytes"] = state.spare * unit;
  entry["peak_held_bytes"] = state.peak * unit;
  entry["live_bytes"] = LiveBytesOf(flow, id);
  entry["run_ahead_ns"] = RunAheadNsOf(flow, id);
  entry["outside_bytes"] = flow.outside().charged(id);
  entry["outside"] = Outside(flow, id, job);
  entry["launches"] = job != nullptr ? job->launches : 0;
  entry["functions"] = job != nullptr ? job->ring.functions() : 0;
  entry["copies"] = job != nullptr ? job->copies : 0;
  entry["collectives"] = job != nullptr && job->collectives;
  entry["unseen_functions"] = Counted(job, protocol::Family::kUnseenNames);
  entry["unseen_lookups"] = Counted(job, protocol::Family::kUnseenLookups);
  entry["leases"] = job != nullptr ? job->leases : 0;
  entry["pressure"] = job != nullptr && job->pressure;
  entry["profile"] = job != nullptr ? ProfileOf(*job) : Json(nullptr);
  entry["waiting"] = job != nullptr ? Waiting(flow, *job, now_ns) : Json(nullptr);
  entry["unseen"] = facts.unseen;
  if (job != nullptr && !job->refusal.empty()) entry["refused"] = job->refusal;
  entry["figures"] = ToJson(id, figures.Of(id), figures.loans(), scale);
  return entry;
}

Json Jobs(const flow::Flow& flow, const std::map<flow::JobId, JobFacts>& jobs,
          const figures::Figures& figures, const figures::Scale& scale, uint64_t now_ns) {
  Json json = Json::array();
  for (const auto& [id, facts] : WithLedgers(flow, jobs)) {
    json.push_back(JobJson(flow, id, facts, figures, scale, now_ns));
  }
  return json;
}

Json Ended(const figures::Figures& figures, const figures::Scale& scale) {
  Json json = Json::array();
  for (const figures::EndedJob& job : figures.ended()) {
    Json entry;
    entry["id"] = job.id;
    entry["name"] = job.name;
    entry["phase"] = "ended";
    entry["ended_unix_ms"] = scale.UnixMs(job.t_ns);
    entry["figures"] = ToJson(job.id, job.figures, figures.loans(), scale);
    json.push_back(std::move(entry));
  }
  return json;
}

/// What NVML says is used, and that less all that Sluice knows of.
Json Nvml(const flow::Flow& flow, const NodeFacts& node) {
  if (!node.used_bytes.has_value()) return nullptr;
  Json json;
  json["used_bytes"] = *node.used_bytes;
  const uint64_t known = node.made_bytes + flow.outside().charged() + node.context_bytes;
  json["drift_bytes"] = static_cast<int64_t>(*node.used_bytes) - static_cast<int64_t>(known);
  return json;
}

/// "pid" is null where there is none.
Json Keeper(const NodeFacts& node) {
  if (!node.keeper.has_value()) return nullptr;
  Json json;
  json["pid"] = node.keeper->there ? Json(node.keeper->pid) : Json(nullptr);
  json["losses"] = node.keeper->losses;
  json["missing_ms"] = node.keeper->missing_ns / 1'000'000;
  return json;
}

}  // namespace

std::string StatusJson(const flow::Flow& flow, const std::map<flow::JobId, JobFacts>& jobs,
                       const gpu::DeviceInfo& device, const NodeFacts& node,
                       const hosttier::HostTier& host_tier, const figures::Figures& figures,
                       const ServiceTimes& service, const tuner::Tuner* tuner, uint64_t now_ns,
                       bool events) {
  const uint64_t unit = flow.options().unit_bytes;
  const scheduler::Ledger& ledger = flow.ledger();
  const figures::Scale scale = {unit, node.unix_offset_ns, events};
  scheduler::Units largest_run = 0;
  for (const scheduler::Extent& run : ledger.map().FreeRuns()) {
    largest_run = std::max(largest_run, run.length);
  }
  Json json;
  json["version"] = SLUICE_VERSION;
  json["started_unix_ms"] = scale.UnixMs(node.started_ns);
  json["gpu"] = node.gpu;
  json["gpu_name"] = device.name;
  json["gpu_uuid"] = DeviceUuidText(device.uuid);
  json["gpu_bytes"] = device.total_bytes;
  json["pool_bytes"] = ledger.pool_units() * unit;
  json["budget_bytes"] = flow.budget() * unit;
  json["wanted_budget_bytes"] = flow.wanted_budget() * unit;
  json["budget_refusal"] = flow.budget_refusal().empty() ? Json() : Json(flow.budget_refusal());
  json["reserve_bytes"] = ledger.held(scheduler::kBeyondBudget) * unit;
  json["unit_bytes"] = unit;
  json["handle_bytes"] = node.handle_bytes;
  json["policy"] = flow.policy_name();
  json["lanes"] = flow.options().policy.lanes;
  json["claims"] = scheduler::ClaimsName(flow.options().claims);
  json["auto"] = tuner != nullptr ? Tuning(*tuner, unit) : Json(nullptr);
  const flow::Units soft = flow.options().policy.soft_budget;
  json["soft_budget_bytes"] = soft != 0 ? Json(soft * unit) : Json(nullptr);
  json["credit_parts"] = flow.options().credit_parts;
  const scheduler::Config& policy = flow.options().policy;
  json["residents"] = policy.residents != 0 ? Json(policy.residents) : Json(nullptr);
  json["slice_ms"] = policy.residents != 0 ? Json(policy.slice_ns / 1'000'000) : Json(nullptr);
  json["free_bytes"] = ledger.free() * unit;
  json["largest_free_bytes"] = largest_run * unit;
  json["outside_reserve_bytes"] = flow.outside().reserve();
  json["outside_bytes"] = flow.outside().charged();
  json["nvml"] = Nvml(flow, node);
  json["host_tier"]["capacity_bytes"] = host_tier.capacity_bytes();
  json["host_tier"]["used_bytes"] = host_tier.used_bytes();
  json["draining"] = node.draining;
  json["bypassed"] = nullptr;
  if (node.bypassed.has_value()) {
    json["bypassed"] = {{"pods", node.bypassed->pods}, {"others", node.bypassed->others}};
  }
  json["keeper"] = Keeper(node);
  json["sessions"] = node.sessions;
  json["figures"] = ToJson(figures, flow.decisions(), scale);
  json["figures"]["adopted"] = node.adopted ? 1 : 0;
  json["jobs"] = Jobs(flow, jobs, figures, scale, now_ns);
  json["ended"] = Ended(figures, scale);
  json["daemon"]["decisions"] = flow.decisions();
  json["daemon"]["leases_answered_at_once"] = service.count();
  json["daemon"]["lease_service_ns_mean"] = service.mean_ns();
  json["daemon"]["lease_service_ns_p50"] = service.median_ns();
  json["daemon"]["fences_pending"] = flow.fences_pending();
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sluice::noded
