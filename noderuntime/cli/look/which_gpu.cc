// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/look/which_gpu.h"

#include <nlohmann/json.hpp>

#include "noderuntime/cli/answer.h"
#include "noderuntime/cli/job_lookup.h"

namespace sluice::cli {
namespace {

bool HasEnded(const std::string& status, const std::string& job) {
  const auto json = nlohmann::json::parse(status, nullptr, /*allow_exceptions=*/false);
  for (const auto& ended : answer::Member(json, "ended")) {
    const auto number = static_cast<uint32_t>(answer::Number(ended, "id"));
    if (MayMean(job, number, answer::Text(ended, "name"))) return true;
  }
  return false;
}

Status Several(const std::vector<GpuStatus>& gpus, const std::vector<size_t>& found,
               const std::string& job) {
  std::string text = "job '" + job + "': there is one on several GPUs; allowed: with --gpu";
  for (const size_t at : found) text += (at == found.front() ? " " : " or ") + gpus[at].gpu;
  return Status(StatusCode::kInvalidArgument, text);
}

}  // namespace

Result<size_t> WhichGpu(const std::vector<GpuStatus>& gpus, const std::string& job) {
  std::vector<size_t> run;
  std::vector<size_t> ended;
  Status missed(StatusCode::kNotFound, "job '" + job + "': there is none");
  Status silent;
  for (size_t i = 0; i < gpus.size(); ++i) {
    const Result<std::string>& status = gpus[i].status;
    const Result<uint32_t> id = status.ok() ? FindJob(*status, job) : status.status();
    if (!status.ok()) {
      silent = status.status().Annotate("GPU " + gpus[i].gpu);
    } else if (id.ok()) {
      run.push_back(i);
    } else if (id.status().code() != StatusCode::kNotFound) {
      return id.status();
    } else if (HasEnded(*status, job)) {
      ended.push_back(i);
    } else if (gpus.size() == 1) {
      missed = id.status();  // with those that are there
    }
  }
  const std::vector<size_t>& found = run.empty() ? ended : run;
  if (found.size() == 1) return found.front();
  if (found.size() > 1) return Several(gpus, found, job);
  if (silent.ok()) return missed;
  return gpus.size() == 1
             ? gpus.front().status.status()
             : Status(StatusCode::kUnavailable,
                      missed.message() + " where a daemon answers; " + silent.message());
}

}  // namespace sluice::cli
