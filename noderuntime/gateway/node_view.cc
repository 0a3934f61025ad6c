// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gateway/node_view.h"

#include <algorithm>
#include <string_view>

#include "noderuntime/gateway/view_json.h"

namespace sluice::gateway {
namespace {

/// Where the list that begins before `at` ends: behind its bracket.
size_t EndOfList(const std::string& text, size_t at) {
  bool quoted = false;
  for (int depth = 1; at < text.size() && depth > 0; ++at) {
    const char c = text[at];
    if (quoted && c == '\\') {
      ++at;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    }
  }
  return std::min(at, text.size());
}

/// Most of a status is what happened to its jobs, in words, which nobody here reads: it is not even
/// parsed, which would be half the time of a scrape. In a name or a sentence the quotes of such a
/// key are escaped.
std::string WithoutEvents(const std::string& text) {
  static constexpr std::string_view kKey = "\"events\":[";
  std::string kept;
  kept.reserve(text.size());
  size_t at = 0;
  for (size_t key = 0; (key = text.find(kKey, at)) != std::string::npos;) {
    const size_t list = key + kKey.size();
    kept.append(text, at, list - at) += ']';
    at = EndOfList(text, list);
  }
  return kept.append(text, at);
}

std::optional<bool> Truth(const Json& object, const char* key) {
  const Json& value = Member(object, key);
  return value.is_boolean() ? std::optional(value.get<bool>()) : std::nullopt;
}

std::vector<JobView> Jobs(const Json& list, const std::vector<uint64_t>& wait_bounds_ns) {
  std::vector<JobView> jobs;
  if (!list.is_array()) return jobs;
  for (const Json& job : list) {
    if (job.is_object()) jobs.push_back(ParseJob(job, wait_bounds_ns));
  }
  return jobs;
}

LoanView Loan(const Json& json) {
  return {static_cast<uint32_t>(Number(json, "lender").value_or(0)),
          static_cast<uint32_t>(Number(json, "borrower").value_or(0)),
          Number(json, "bytes"),
          Number(json, "lent_bytes"),
          Number(json, "returned_bytes"),
          Number(json, "loans")};
}

void TakePool(const Json& json, GpuView* gpu) {
  gpu->memory_bytes = Number(json, "gpu_bytes");
  gpu->pool_bytes = Number(json, "pool_bytes");
  gpu->budget_bytes = Number(json, "budget_bytes");
  gpu->free_bytes = Number(json, "free_bytes");
  gpu->reserve_bytes = Number(json, "reserve_bytes");
  gpu->largest_free_bytes = Number(json, "largest_free_bytes");
  gpu->outside_reserve_bytes = Number(json, "outside_reserve_bytes");
  gpu->outside_bytes = Number(json, "outside_bytes");
  gpu->host_tier_capacity_bytes = Number(Member(json, "host_tier"), "capacity_bytes");
  gpu->host_tier_used_bytes = Number(Member(json, "host_tier"), "used_bytes");
  const Json& nvml = Member(json, "nvml");
  gpu->nvml_used_bytes = Number(nvml, "used_bytes");
  const Json& drift = Member(nvml, "drift_bytes");
  if (drift.is_number_integer()) gpu->drift_bytes = drift.get<int64_t>();
}

void TakeFigures(const Json& json, GpuView* gpu) {
  gpu->policy_switches = Number(json, "policy_switches");
  gpu->decisions = Number(json, "decisions");
  const Json& bounds = Member(json, "bounds_ns");
  gpu->decision = HistogramIn(json, "decision", Numbers(bounds, "decision"));
  gpu->service = HistogramIn(json, "service", Numbers(bounds, "service"));
  gpu->handover = HistogramIn(json, "handover", Numbers(bounds, "handover"));
  gpu->reclaim = HistogramIn(json, "reclaim", Numbers(bounds, "reclaim"));
  const Json& loans = Member(json, "loans");
  if (!loans.is_array()) return;
  for (const Json& loan : loans) gpu->loans.push_back(Loan(loan));
}

}  // namespace

Result<GpuView> ParseStatus(const std::string& text) {
  const Json json = Json::parse(WithoutEvents(text), nullptr, false);
  if (!json.is_object()) {
    return Status(StatusCode::kUnavailable, "sluice-noded: sent a status that is none");
  }
  GpuView gpu;
  gpu.up = true;
  gpu.number = static_cast<uint32_t>(Number(json, "gpu").value_or(0));
  gpu.uuid = Text(json, "gpu_uuid");
  gpu.name = Text(json, "gpu_name");
  gpu.version = Text(json, "version");
  gpu.started_unix_ms = Number(json, "started_unix_ms");
  TakePool(json, &gpu);
  gpu.policy = Text(json, "policy");
  gpu.lanes = static_cast<uint32_t>(Number(json, "lanes").value_or(0));
  gpu.claims = Text(json, "claims");
  gpu.draining = Truth(json, "draining");
  gpu.fences_pending = Number(Member(json, "daemon"), "fences_pending");
  gpu.bypassed_pods = Number(Member(json, "bypassed"), "pods");
  gpu.bypassed_others = Number(Member(json, "bypassed"), "others");
  if (const Json& keeper = Member(json, "keeper"); keeper.is_object()) {
    gpu.keeper = Number(keeper, "pid").has_value();
    gpu.keeper_losses = Number(keeper, "losses");
  }
  gpu.sessions = Counts(json, "sessions");
  const Json& figures = Member(json, "figures");
  TakeFigures(figures, &gpu);
  const std::vector<uint64_t> wait_bounds = Numbers(Member(figures, "bounds_ns"), "wait");
  gpu.jobs = Jobs(Member(json, "jobs"), wait_bounds);
  if (const Json& ended = Member(json, "ended"); ended.is_array()) {
    gpu.ended = Jobs(ended, wait_bounds);
  }
  return gpu;
}

}  // namespace sluice::gateway
