// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/daemon_commands.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <vector>

#include "common/bytes.h"
#include "common/printable.h"
#include "noderuntime/cli/job_lookup.h"
#include "noderuntime/cli/node_daemons.h"
#include "noderuntime/cli/status_table.h"

namespace sluice::cli {
namespace {

using Act = std::function<Result<std::string>(DaemonClient& client)>;

struct Answer {
  std::string where;  // "FOLDER: " where several may be meant
  Result<std::string> said;
};

/// All are tried, whatever one of them says.
std::vector<Answer> AskEach(const NodeDaemons& daemons, const Act& act) {
  std::vector<Answer> answers;
  for (const std::string& folder : daemons.folders) {
    Result<DaemonClient> client = ConnectIn(folder);
    answers.push_back({daemons.of_node ? folder + ": " : "",
                       client.ok() ? act(*client) : Result<std::string>(client.status())});
  }
  return answers;
}

/// Returns 1 if one failed.
int ComplainOf(const std::vector<Answer>& answers) {
  int code = 0;
  for (const Answer& answer : answers) {
    if (!answer.said.ok()) code = Complain(answer.where + answer.said.status().message(), 1);
  }
  return code;
}

/// `act` says what it did, in one line without its end.
int WithEach(const std::string& runtime_dir, const Act& act) {
  const std::vector<Answer> answers = AskEach(DaemonsIn(runtime_dir), act);
  for (const Answer& answer : answers) {
    if (answer.said.ok()) std::printf("%s%s\n", answer.where.c_str(), answer.said->c_str());
  }
  return ComplainOf(answers);
}

bool IsNumber(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

int Complain(const std::string& text, int code) {
  std::fprintf(stderr, "sluice: %s\n", PrintableLines(text).c_str());
  return code;
}

int ShowStatus(const StatusOptions& options) {
  const NodeDaemons daemons = DaemonsIn(options.runtime_dir);
  const std::vector<Answer> answers =
      AskEach(daemons, [&](DaemonClient& client) -> Result<std::string> {
        const Result<std::string> json = client.FetchStatus();
        return !json.ok() || options.json ? json : RenderStatus(*json);
      });
  std::string text;
  for (const Answer& answer : answers) {
    if (!answer.said.ok()) continue;
    if (!text.empty()) text += options.json ? ",\n" : "\n";
    text += *answer.said;
  }
  if (options.json && daemons.of_node) text = "[" + text + "]";
  std::fputs(text.c_str(), stdout);
  if (options.json && !text.empty() && !text.ends_with('\n')) std::fputc('\n', stdout);
  return ComplainOf(answers);
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
  std::vector<Answer> silent;  // whose jobs nobody knows
  const NodeDaemons daemons = DaemonsIn(options.runtime_dir);
  for (const std::string& folder : daemons.folders) {
    Result<DaemonClient> client = ConnectIn(folder);
    const Result<std::string> json =
        client.ok() ? client->FetchStatus() : Result<std::string>(client.status());
    if (!json.ok()) {
      silent.push_back({daemons.of_node ? folder + ": " : "", json});
      continue;
    }
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
  ComplainOf(silent);
  if (!chosen.has_value()) return missed.ok() ? 1 : Complain(missed.message(), 1);
  // Each daemon has numbers of its own.
  if (!silent.empty() && IsNumber(options.job)) {
    return Complain("job '" + options.job +
                        "': may be another one on a GPU whose daemon does not answer; allowed: its "
                        "name, or with --runtime-dir " +
                        options.runtime_dir + "/N the one on GPU N",
                    1);
  }
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
