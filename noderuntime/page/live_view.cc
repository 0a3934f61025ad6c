// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/page/live_view.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "noderuntime/cli/answer.h"

namespace sluice::page {
namespace {

using cli::answer::Number;
using Json = nlohmann::ordered_json;

// More than a daemon has; what it says beyond is not shown.
constexpr size_t kMaxJobs = 4096;
constexpr size_t kMaxLoans = 512;
constexpr size_t kMaxFrames = 1024;
constexpr size_t kMaxText = 400;

/// Cut between characters, not inside of one.
std::string Text(const Json& object, const char* key) {
  std::string text = cli::answer::Text(object, key);
  if (text.size() <= kMaxText) return text;
  size_t end = kMaxText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

const Json& Array(const Json& object, const char* key) {
  static const Json kNone = Json::array();
  const Json& value = cli::answer::Member(object, key);
  return value.is_array() ? value : kNone;
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json Job(const Json& from) {
  Json job;
  job["id"] = Number(from, "id");
  for (const char* key : {"name", "phase"}) job[key] = Text(from, key);
  for (const char* key : {"held", "live", "claim", "limit", "request", "base", "lent", "borrowed",
                          "gate", "gates", "iteration", "waits_ms"}) {
    job[key] = Number(from, key);
  }
  for (const char* key : {"waits_for", "code"}) job[key] = Text(from, key);
  return job;
}

bool IsLoan(const Json& loan) {
  return loan.is_array() && loan.size() == 3 &&
         std::all_of(loan.begin(), loan.end(),
                     [](const Json& n) { return n.is_number_unsigned(); });
}

bool IsFrame(const Json& frame) {
  return frame.is_array() && frame.size() == 2 && frame[0].is_number_unsigned() &&
         frame[1].is_array() && frame[1].size() % 2 == 0 && frame[1].size() <= 2 * kMaxJobs &&
         std::all_of(frame[1].begin(), frame[1].end(),
                     [](const Json& n) { return n.is_number_unsigned(); });
}

}  // namespace

Result<LiveView> ReadLive(const std::string& daemon_json, uint32_t gpu) {
  const Json from = Json::parse(daemon_json, nullptr, false);
  if (!from.is_object() || !from.contains("seq")) {
    return Status(StatusCode::kUnavailable, "sluice-noded: sent live figures that are none");
  }
  LiveView view;
  view.seq = Number(from, "seq");
  view.now_ms = Number(from, "now_ms");
  Json json;
  json["gpu"] = gpu;
  for (const char* key : {"seq", "now_ms", "step_ms", "pool", "budget", "unit", "free"}) {
    json[key] = Number(from, key);
  }
  json["policy"] = Text(from, "policy");
  json["lanes"] = Number(from, "lanes");
  uint64_t held = 0;
  json["jobs"] = Json::array();
  for (const Json& each : Array(from, "jobs")) {
    if (!each.is_object() || json["jobs"].size() == kMaxJobs) continue;
    held += Number(each, "held");
    json["jobs"].push_back(Job(each));
  }
  json["held"] = held;
  uint64_t lent = 0;
  json["loans"] = Json::array();
  for (const Json& loan : Array(from, "loans")) {
    if (!IsLoan(loan) || json["loans"].size() == kMaxLoans) continue;
    lent += loan[2].get<uint64_t>();
    json["loans"].push_back(loan);
  }
  json["lent"] = lent;
  view.json = Dump(json);
  for (const Json& frame : Array(from, "frames")) {
    if (!IsFrame(frame) || view.frames.size() == kMaxFrames) continue;
    view.frames.push_back({frame[0].get<uint64_t>(), Dump(frame)});
  }
  return view;
}

std::string WithFrames(const std::string& view_json, std::span<const Frame> frames) {
  size_t bytes = view_json.size() + 16;
  for (const Frame& frame : frames) bytes += frame.json.size() + 1;
  std::string text;
  text.reserve(bytes);
  text.append(view_json, 0, view_json.size() - 1);  // without its closing brace
  text += ",\"frames\":[";
  for (const Frame& frame : frames) {
    if (&frame != &frames.front()) text += ',';
    text += frame.json;
  }
  return text + "]}";
}

Result<std::string> ReadJob(const std::string& status_json, uint32_t job) {
  const Json from = Json::parse(status_json, nullptr, false);
  if (!from.is_object()) {
    return Status(StatusCode::kUnavailable, "sluice-noded: sent a status that is none");
  }
  for (const char* list : {"jobs", "ended"}) {
    for (const Json& entry : Array(from, list)) {
      if (!entry.is_object() || Number(entry, "id") != job) continue;
      Json json;
      json["gpu"] = Number(from, "gpu");
      json["policy"] = Text(from, "policy");
      json["lanes"] = Number(from, "lanes");
      const Json figures = from.value("figures", Json::object());
      json["bounds_ns"] = figures.is_object() ? figures.value("bounds_ns", Json()) : Json();
      json["job"] = entry;
      return Dump(json);
    }
  }
  return Status(StatusCode::kNotFound,
                "job " + std::to_string(job) + ": there is none; it may have ended some time ago");
}

std::string ReadGpu(const Result<std::string>& status_json, uint32_t gpu) {
  Json json;
  json["gpu"] = gpu;
  const Json from = status_json.ok() ? Json::parse(*status_json, nullptr, false) : Json();
  json["number"] = from.is_object() ? Number(from, "gpu") : gpu;
  json["up"] = from.is_object();
  json["name"] = Text(from, "gpu_name");
  json["uuid"] = Text(from, "gpu_uuid");
  json["version"] = Text(from, "version");
  json["pool"] = Number(from, "pool_bytes");
  json["policy"] = Text(from, "policy");
  json["lanes"] = Number(from, "lanes");
  json["jobs"] = Array(from, "jobs").size();
  return Dump(json);
}

}  // namespace sluice::page
