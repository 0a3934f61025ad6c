// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/look/live_view.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "noderuntime/cli/answer.h"

namespace sluice::cli {
namespace {

using answer::Number;
using answer::Text;
using nlohmann::json;

LiveJob JobOf(const json& entry) {
  LiveJob job;
  job.id = static_cast<uint32_t>(Number(entry, "id"));
  job.name = Text(entry, "name");
  job.phase = Text(entry, "phase");
  job.held = Number(entry, "held");
  job.live = Number(entry, "live");
  job.claim = Number(entry, "claim");
  job.limit = Number(entry, "limit");
  job.lent = Number(entry, "lent");
  job.borrowed = Number(entry, "borrowed");
  job.gate = Number(entry, "gate");
  job.gates = Number(entry, "gates");
  job.iteration = Number(entry, "iteration");
  job.waits_ms = Number(entry, "waits_ms");
  job.waits_for = Text(entry, "waits_for");
  job.code = Text(entry, "code");
  return job;
}

/// [t_ms, [job, units, job, units, ...]]
Result<LiveStep> StepOf(const json& frame, uint64_t unit_bytes) {
  const Status bad(StatusCode::kUnavailable, "sluice-noded: sent a step that is none");
  if (!frame.is_array() || frame.size() != 2 || !frame[0].is_number_unsigned() ||
      !frame[1].is_array() || frame[1].size() % 2 != 0) {
    return bad;
  }
  LiveStep step;
  step.t_ms = frame[0].get<uint64_t>();
  for (size_t i = 0; i < frame[1].size(); i += 2) {
    if (!frame[1][i].is_number_unsigned() || !frame[1][i + 1].is_number_unsigned()) return bad;
    step.bytes[frame[1][i].get<uint32_t>()] = frame[1][i + 1].get<uint64_t>() * unit_bytes;
  }
  return step;
}

}  // namespace

Status LiveView::Take(const std::string& text) {
  const json answer = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object() || !answer.contains("jobs") || !answer["jobs"].is_array()) {
    return Status(StatusCode::kUnavailable, "sluice-noded: sent a live view that is none");
  }
  const uint64_t unit = Number(answer, "unit");
  std::vector<LiveStep> steps;
  for (const json& frame : answer.value("frames", json::array())) {
    Result<LiveStep> step = StepOf(frame, unit);
    if (!step.ok()) return step.status();
    steps.push_back(std::move(*step));
  }
  cursor_ = Number(answer, "seq");
  now_ms_ = Number(answer, "now_ms");
  pool_ = Number(answer, "pool");
  budget_ = Number(answer, "budget");
  free_ = Number(answer, "free");
  policy_ = Text(answer, "policy");
  lanes_ = Number(answer, "lanes");
  jobs_.clear();
  for (const json& entry : answer["jobs"]) {
    if (entry.is_object()) jobs_.push_back(JobOf(entry));
  }
  for (LiveStep& step : steps) {
    // A step that was not over comes again.
    while (!steps_.empty() && steps_.back().t_ms >= step.t_ms) steps_.pop_back();
    steps_.push_back(std::move(step));
  }
  while (steps_.size() > 1 && steps_[1].t_ms + kKeptMs < now_ms_) steps_.pop_front();
  return {};
}

}  // namespace sluice::cli
