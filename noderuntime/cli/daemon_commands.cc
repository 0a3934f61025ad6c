// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/daemon_commands.h"

#include <cstdio>
#include <functional>
#include <optional>

#include "common/bytes.h"
#include "noderuntime/cli/job_lookup.h"
#include "noderuntime/cli/node_daemons.h"
#include "noderuntime/cli/status_table.h"

namespace sluice::cli {
namespace {

/// `act` says what it did, in one line without its end. All are tried, whatever one of them says.
int WithEach(const std::string& runtime_dir,
             const std::function<Result<std::string>(DaemonClient& client)>& act) {
  int code = 0;
  const NodeDaemons daemons = DaemonsIn(runtime_dir);
  for (const std::string& folder : daemons.folders) {
    Result<DaemonClient> client = ConnectIn(folder);
    const Result<std::string> said = client.ok() ? act(*client) : client.status();
    const std::string where = daemons.of_node ? folder + ": " : "";
    if (said.ok()) {
      std::printf("%s%s\n", where.c_str(), said->c_str());
    } else {
      code = Complain(where + said.status().message(), 1);
    }
  }
  return code;
}

}  // namespace

int Complain(const std::string& text, int code) {
  std::fprintf(stderr, "sluice: %s\n", text.c_str());
  return code;
}

int ShowStatus(const StatusOptions& options) {
  const NodeDaemons daemons = DaemonsIn(options.runtime_dir);
  std::string text;
  for (const std::string& folder : daemons.folders) {
    Result<DaemonClient> client = ConnectIn(folder);
    if (!client.ok()) return Complain(client.status().message(), 1);
    const Result<std::string> json = client->FetchStatus();
    if (!json.ok()) return Complain(json.status().message(), 1);
    const Result<std::string> shown = options.json ? json : RenderStatus(*json);
    if (!shown.ok()) return Complain(shown.status().message(), 1);
    if (!text.empty()) text += options.json ? ",\n" : "\n";
    text += *shown;
  }
  if (options.json && daemons.of_node) text = "[" + text + "]";
  std::fputs(text.c_str(), stdout);
  if (options.json && !text.ends_with('\n')) std::fputc('\n', stdout);
  return 0;
}

int SwitchPolicy(const PolicyOptions& options) {
  return WithEach(options.runtime_dir, [&](DaemonClient& client) -> Result<std::string> {
    const Result<uint32_t> lanes = client.SetPolicy(options.policy, options.lanes);
    if (!lanes.ok()) return lanes.status();
    return "policy " + options.policy + ", " + std::to_string(*lanes) + " lanes";
  });
}

int SwitchBudget(const BudgetOptions& options) {
  return WithEach(options.runtime_dir, [&](DaemonClient& client) -> Result<std::string> {
    const auto budget = client.SetBudget(options.bytes);
    if (!budget.ok()) return budget.status();
    const std::string said = "budget " + FormatBytes(budget->bytes);
    if (budget->in_force == budget->bytes) return said;
    return said + " as soon as jobs inside their iterations have ended them; sluice status tells";
  });
}

int SwitchLimit(const LimitOptions& options) {
  std::optional<DaemonClient> chosen;
  uint32_t job = 0;
  Status missed;
  for (const std::string& folder : DaemonsIn(options.runtime_dir).folders) {
    Result<DaemonClient> client = ConnectIn(folder);
    if (!client.ok()) return Complain(client.status().message(), 1);
    const Result<std::string> json = client->FetchStatus();
    if (!json.ok()) return Complain(json.status().message(), 1);
    const Result<uint32_t> found = FindJob(*json, options.job);
    if (!found.ok()) {
      missed = found.status();
    } else if (chosen.has_value()) {
      return Complain("job '" + options.job + "': on several GPUs; allowed: with --runtime-dir " +
                          options.runtime_dir + "/N the one on GPU N",
                      1);
    } else {
      chosen.emplace(std::move(*client));
      job = *found;
    }
  }
  if (!chosen.has_value()) return Complain(missed.message(), 1);
  const Result<uint64_t> limit = chosen->SetLimit(job, options.bytes);
  if (!limit.ok()) return Complain(limit.status().message(), 1);
  std::printf("job %u, limit %s\n", job, FormatBytes(*limit).c_str());
  return 0;
}

int SwitchDrain(const DrainOptions& options) {
  return WithEach(options.runtime_dir, [&](DaemonClient& client) -> Result<std::string> {
    const auto drained = client.Drain(options.on);
    if (!drained.ok()) return drained.status();
    return std::string("drain ") + (drained->on ? "on" : "off") + ", " +
           std::to_string(drained->jobs) + " jobs are there";
  });
}

}  // namespace sluice::cli
