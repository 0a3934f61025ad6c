// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/status_table.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/bytes.h"
#include "noderuntime/cli/text_columns.h"

namespace sluice::cli {
namespace {

using nlohmann::json;

/// The daemon may be of another version: what it does not say is shown as unknown, not as an error.
std::string Bytes(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()) return "?";
  return FormatBytes(found->get<uint64_t>());
}

std::string Text(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return "?";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string WaitsFor(const json& job) {
  const auto waiting = job.find("waiting");
  if (job.value("unseen", json()) == true) {
    return "nothing: on the GPU without a session: the library is not in it";
  }
  if (job.contains("refused")) return "refused: " + Text(job, "refused");
  if (waiting == job.end() || !waiting->is_object()) return "";
  return Text(*waiting, "reason");
}

/// What a newer runtime uses may need a newer library.
std::string Unseen(const json& job) {
  return "job " + Text(job, "id") + " was given " + Text(job, "unseen_functions") +
         " driver functions that this library does not know (looked up " +
         Text(job, "unseen_lookups") +
         " times): they pass through unseen; sluice run --verbose names them\n";
}

/// Where the daemon is to have one.
std::string Keeper(const json& status) {
  const auto found = status.find("keeper");
  if (found == status.end() || !found->is_object() || !found->value("pid", json(0)).is_null()) {
    return "";
  }
  return "no keeper for " + std::to_string(found->value("missing_ms", uint64_t{0}) / 1000) +
         " s: if the daemon is killed now, its jobs keep what they hold and get no more; its log "
         "says why\n";
}

/// What outlives the daemon, who else is on the GPU, and whether somebody new may be.
std::string Warnings(const json& status) {
  std::string text = Keeper(status);
  if (status.value("draining", json()) == true) {
    text += "no new jobs are taken (sluice drain off ends that)\n";
  }
  const auto found = status.find("bypassed");
  if (found == status.end() || !found->is_object()) return text;
  const uint64_t pods = found->value("pods", uint64_t{0});
  const uint64_t others = found->value("others", uint64_t{0});
  if (pods + others > 0) {
    text += "processes found on the GPU without the library: " + std::to_string(pods) +
            " of pods, " + std::to_string(others) + " others; the daemon's log names them\n";
  }
  return text;
}

/// Which policy stands there was chosen, or is tried.
std::string Auto(const json& status) {
  const auto found = status.find("auto");
  if (found == status.end() || !found->is_object()) return "";
  return " (auto: " + Text(*found, "state") + ")";
}

/// Where it is less than the pool, or is to be.
std::string Budget(const json& status) {
  const json pool = status.value("pool_bytes", json());
  const json now = status.value("budget_bytes", pool);
  const json wanted = status.value("wanted_budget_bytes", now);
  std::string text;
  if (now != pool) text = " (" + Bytes(status, "budget_bytes") + " of it lent)";
  if (wanted != now) text += ", falling to " + Bytes(status, "wanted_budget_bytes");
  if (status.value("soft_budget_bytes", json()).is_number()) {
    text += ", shared as if it were " + Bytes(status, "soft_budget_bytes");
  }
  return text;
}

}  // namespace

Result<std::string> RenderStatus(const std::string& json_text) {
  const json status = json::parse(json_text, nullptr, /*allow_exceptions=*/false);
  if (!status.is_object() || !status.contains("jobs") || !status["jobs"].is_array()) {
    return Status(StatusCode::kInternal, "sluice-noded: sent a status that is not understood");
  }
  std::string text = "GPU " + Text(status, "gpu") + " " + Text(status, "gpu_name") + ": pool " +
                     Bytes(status, "pool_bytes") + Budget(status) + ", free " +
                     Bytes(status, "free_bytes") + ", policy " + Text(status, "policy") +
                     Auto(status) + "\n";
  if (const json why = status.value("budget_refusal", json()); why.is_string()) {
    text += "the budget was given up: " + why.get<std::string>() + "\n";
  }
  text += Warnings(status);
  if (status["jobs"].empty()) return text + "no jobs\n";
  std::vector<std::vector<std::string>> rows = {
      {"JOB", "NAME", "PHASE", "HELD", "PEAK", "REQUEST", "LIMIT", "WAITS FOR"}};
  for (const json& job : status["jobs"]) {
    if (!job.is_object()) continue;
    rows.push_back({Text(job, "id"), Text(job, "name"), Text(job, "phase"),
                    Bytes(job, "held_bytes"), Bytes(job, "peak_held_bytes"),
                    Bytes(job, "request_bytes"), Bytes(job, "limit_bytes"), WaitsFor(job)});
  }
  // All but the last column are numbers from the third on.
  text += AlignColumns(rows, 0, 3, rows.front().size() - 2);
  for (const json& job : status["jobs"]) {
    if (job.is_object() && job.value("unseen_functions", json(0)) != 0) text += Unseen(job);
  }
  return text;
}

}  // namespace sluice::cli
