// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/job_lookup.h"

#include <nlohmann/json.hpp>
#include <vector>

namespace sluice::cli {
namespace {

struct Known {
  uint32_t id = 0;
  std::string name;
};

Status Wrong(StatusCode code, const std::string& job, const std::string& why,
             const std::vector<Known>& jobs) {
  std::string text = "job '" + job + "': " + why;
  for (const Known& known : jobs) {
    text += (&known == &jobs.front() ? "; allowed: " : ", ") + std::to_string(known.id) + " (" +
            known.name + ")";
  }
  return Status(code, jobs.empty() ? text + "; there is no job" : text);
}

}  // namespace

bool MayMean(const std::string& job, uint32_t id, const std::string& name) {
  return std::to_string(id) == job || name == job || name.starts_with(job + "/");
}

Result<uint32_t> FindJob(const std::string& status_json, const std::string& job) {
  std::vector<Known> jobs;
  const auto status = nlohmann::json::parse(status_json, nullptr, false);
  if (!status.is_object() || !status.contains("jobs") || !status["jobs"].is_array()) {
    return Status(StatusCode::kUnavailable, "sluice-noded: sent a status without jobs");
  }
  for (const auto& entry : status["jobs"]) {
    if (entry.is_object()) jobs.push_back({entry.value("id", 0u), entry.value("name", "")});
  }
  std::vector<Known> found;
  for (const Known& known : jobs) {
    if (std::to_string(known.id) == job) return known.id;
    if (MayMean(job, known.id, known.name)) found.push_back(known);
  }
  if (found.size() == 1) return found.front().id;
  if (found.empty()) return Wrong(StatusCode::kNotFound, job, "there is none", jobs);
  return Wrong(StatusCode::kInvalidArgument, job, "several are meant", found);
}

}  // namespace sluice::cli
