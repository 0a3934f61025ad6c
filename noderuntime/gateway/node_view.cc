// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gateway/node_view.h"

#include <nlohmann/json.hpp>

namespace sluice::gateway {
namespace {

using Json = nlohmann::json;

uint64_t Number(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

std::string Text(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

JobView Job(const Json& json) {
  JobView job;
  job.id = static_cast<uint32_t>(Number(json, "id"));
  job.name = Text(json, "name");
  job.phase = Text(json, "phase");
  job.request_bytes = Number(json, "request_bytes");
  job.limit_bytes = Number(json, "limit_bytes");
  job.held_bytes = Number(json, "held_bytes");
  job.peak_held_bytes = Number(json, "peak_held_bytes");
  job.outside_bytes = Number(json, "outside_bytes");
  if (const auto waiting = json.find("waiting"); waiting != json.end() && waiting->is_object()) {
    job.waits_for = Text(*waiting, "reason");
    job.waits_ms = Number(*waiting, "since_ms");
  }
  // Who was refused waits for nothing any more; this is why it has none.
  if (job.waits_for.empty()) job.waits_for = Text(json, "refused");
  return job;
}

}  // namespace

Result<GpuView> ParseStatus(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) {
    return Status(StatusCode::kUnavailable, "sluice-noded: sent a status that is none");
  }
  GpuView gpu;
  gpu.up = true;
  gpu.number = static_cast<uint32_t>(Number(json, "gpu"));
  gpu.uuid = Text(json, "gpu_uuid");
  gpu.name = Text(json, "gpu_name");
  gpu.version = Text(json, "version");
  gpu.pool_bytes = Number(json, "pool_bytes");
  gpu.budget_bytes = Number(json, "budget_bytes");
  gpu.free_bytes = Number(json, "free_bytes");
  gpu.policy = Text(json, "policy");
  gpu.lanes = static_cast<uint32_t>(Number(json, "lanes"));
  gpu.draining = json.value("draining", Json()) == true;
  if (const auto found = json.find("bypassed"); found != json.end() && found->is_object()) {
    gpu.bypassed_pods = Number(*found, "pods");
    gpu.bypassed_others = Number(*found, "others");
  }
  if (const auto jobs = json.find("jobs"); jobs != json.end() && jobs->is_array()) {
    for (const Json& job : *jobs) {
      if (job.is_object()) gpu.jobs.push_back(Job(job));
    }
  }
  return gpu;
}

}  // namespace sluice::gateway
