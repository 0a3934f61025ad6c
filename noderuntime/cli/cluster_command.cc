// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/cluster_command.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/printable.h"
#include "noderuntime/cli/child.h"
#include "noderuntime/cli/options.h"

namespace sluice::cli {
namespace {

constexpr char kUsage[] =
    "Usage: kubectl sluice [--node NODE | --all-nodes] [-n NAMESPACE] [--context NAME] "
    "[--kubeconfig FILE] COMMAND ...\n"
    "  status [--json]          jobs of the nodes, and who holds what\n"
    "  explain NAMESPACE/POD    why a job waits, and who holds what meanwhile\n"
    "  top                      one look at how memory moves\n"
    "  limit NAMESPACE/POD SIZE the most memory that a job may hold, while it runs\n"
    "  drain on|off             take no new jobs (needs --node or --all-nodes)\n"
    "  policy NAME, budget SIZE as sluice's own (need --node or --all-nodes)\n"
    "-n: where Sluice is installed, if that is not to be looked for.\n";
constexpr char kAllowed[] = "status, explain, top, limit, drain, policy, budget";

Status Bad(const std::string& text) { return Status(StatusCode::kInvalidArgument, text); }

bool IsOneOf(const std::string& word, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* each) { return word == each; });
}

Result<CommandOutput> Kubectl(const std::string& kubectl, const ClusterCommand& command,
                              const std::vector<std::string>& arguments,
                              const Environment& environment) {
  SpawnOptions options;
  // It looks the program up.
  options.argv = {"/usr/bin/env", kubectl};
  options.argv.insert(options.argv.end(), command.access.begin(), command.access.end());
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.environment = environment;
  return RunCommand(std::move(options));
}

int Fail(const std::string& text, int code) {
  std::fprintf(stderr, "kubectl sluice: %s\n", PrintableLines(text).c_str());
  return code;
}

/// NAMESPACE/POD, and perhaps a container.
bool IsPod(const std::string& job) {
  const auto slashes = std::count(job.begin(), job.end(), '/');
  return (slashes == 1 || slashes == 2) && !job.starts_with('/') && !job.ends_with('/') &&
         job.find("//") == std::string::npos;
}

/// A number is another job's on each node, and another name may be.
Status CheckJob(const std::vector<std::string>& command) {
  const auto job = std::find_if(command.begin() + 1, command.end(),
                                [](const std::string& word) { return !word.starts_with('-'); });
  const std::string said = job == command.end() ? "" : *job;
  if (IsPod(said)) return {};
  return Bad(command.front() + " '" + said +
             "': allowed on a cluster: NAMESPACE/POD or NAMESPACE/POD/CONTAINER");
}

std::string Trimmed(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

Result<ClusterCommand> ParseClusterCommand(const std::vector<std::string>& arguments) {
  ClusterCommand command;
  bool all_nodes = false;
  size_t at = 0;
  for (; at < arguments.size() && arguments[at].starts_with('-'); ++at) {
    const std::string name = arguments[at].substr(0, arguments[at].find('='));
    if (name == "--version") {
      command.wants_version = true;
      return command;
    }
    if (IsOneOf(name, {"-h", "--help"})) {
      command.wants_help = true;
      return command;
    }
    if (name == "--all-nodes") {
      all_nodes = true;
      continue;
    }
    if (!IsOneOf(name, {"-n", "--namespace", "--node", "--context", "--kubeconfig"})) {
      return Bad(name + ": allowed before the command: --node, --all-nodes, -n, --context, " +
                 "--kubeconfig");
    }
    std::string value;
    if (name.size() < arguments[at].size()) {
      value = arguments[at].substr(name.size() + 1);
    } else if (++at < arguments.size()) {
      value = arguments[at];
    }
    if (value.empty()) return Bad(name + " without a value");
    if (name == "--node") {
      command.node = value;
    } else if (IsOneOf(name, {"-n", "--namespace"})) {
      command.space = value;
    } else {
      command.access.push_back(name + "=" + value);
    }
  }
  command.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(at), arguments.end());
  if (command.command.empty()) return Bad(std::string("a command is needed; allowed: ") + kAllowed);
  const std::string& word = command.command.front();
  if (!IsOneOf(word, {"status", "explain", "top", "limit", "drain", "policy", "budget"})) {
    return Bad("'" + word + "' is no command for a cluster; allowed: " + kAllowed);
  }
  if (all_nodes && !command.node.empty()) return Bad("--node, --all-nodes: allowed: one of them");
  if (IsOneOf(word, {"drain", "policy", "budget"}) && !all_nodes && command.node.empty()) {
    return Bad(word + " changes a node; allowed: with --node NODE or --all-nodes");
  }
  if (IsOneOf(word, {"limit", "explain"})) {
    if (Status s = CheckJob(command.command); !s.ok()) return s;
  }
  for (const std::string& argument : command.command) {
    if (argument.starts_with("--runtime-dir")) {
      return Bad("--runtime-dir: on a cluster it is sluice-node's; allowed: --node");
    }
  }
  return command;
}

Result<std::vector<NodePod>> NodePodsOf(const std::string& json) {
  const auto list = nlohmann::json::parse(json, nullptr, false);
  if (!list.is_object() || !list.contains("items") || !list["items"].is_array()) {
    return Status(StatusCode::kUnavailable, "kubectl answered with no list of pods");
  }
  std::vector<NodePod> pods;
  for (const auto& item : list["items"]) {
    if (!item.is_object()) continue;
    const auto text = [&item](const char* path) {
      const nlohmann::json::json_pointer where(path);
      return item.contains(where) && item[where].is_string() ? item[where].get<std::string>() : "";
    };
    if (text("/status/phase") != "Running") continue;
    pods.push_back({text("/metadata/namespace"), text("/metadata/name"), text("/spec/nodeName")});
  }
  std::sort(pods.begin(), pods.end(),
            [](const NodePod& a, const NodePod& b) { return a.node < b.node; });
  return pods;
}

int RunClusterCommand(const std::vector<std::string>& arguments, const Environment& environment,
                      const std::string& kubectl) {
  const Result<ClusterCommand> command = ParseClusterCommand(arguments);
  if (!command.ok()) return Fail(command.status().message(), 2);
  if (command->wants_version) {
    std::fputs(kVersionText, stdout);
    return 0;
  }
  if (command->wants_help) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  std::vector<std::string> list = {
      "get",  "pods",       "-o",
      "json", "--selector", "app.kubernetes.io/name=sluice,app.kubernetes.io/component=node"};
  list.push_back(command->space.empty() ? "--all-namespaces" : "--namespace=" + command->space);
  if (!command->node.empty()) list.push_back("--field-selector=spec.nodeName=" + command->node);
  const Result<CommandOutput> listed = Kubectl(kubectl, *command, list, environment);
  if (!listed.ok()) return Fail(listed.status().message(), 1);
  if (!listed->status.ok()) return Fail(Trimmed(listed->err), 1);
  const Result<std::vector<NodePod>> pods = NodePodsOf(listed->out);
  if (!pods.ok()) return Fail(pods.status().message(), 1);
  if (pods->empty()) return Fail("no pod of sluice-node runs there; is Sluice installed?", 1);

  // A job is on one node; the others say that they have none of this name.
  const bool of_job = IsOneOf(command->command.front(), {"limit", "explain"});
  const bool json = std::find(command->command.begin(), command->command.end(), "--json") !=
                    command->command.end();
  std::string out;
  std::string errors;
  size_t done = 0;
  for (const NodePod& pod : *pods) {
    std::vector<std::string> run = {
        "exec", "--namespace=" + pod.space, pod.name, "--container=node", "--", "sluice"};
    run.insert(run.end(), command->command.begin(), command->command.end());
    run.emplace_back("--runtime-dir=/run/sluice-node");
    // kubectl exec gives a program no terminal unless it is asked to.
    if (command->command.front() == "top") run.emplace_back("--once");
    const Result<CommandOutput> ran = Kubectl(kubectl, *command, run, environment);
    const bool good = ran.ok() && ran->status.ok();
    if (good) ++done;
    if (!good) {
      errors += pod.node + ": " + Trimmed(ran.ok() ? ran->err : ran.status().message()) + "\n";
      // One of its daemons does not answer, say; the others' answers are there.
      if (!ran.ok() || ran->out.empty()) continue;
    }
    if (json) {
      out += std::string(out.empty() ? "" : ",\n") + R"({"node": )" +
             nlohmann::json(pod.node).dump() + R"(, "gpus": )" + Trimmed(ran->out) + "}";
    } else {
      out += "node " + pod.node + "\n" + ran->out;
    }
  }
  if (json) out = "[" + out + "]\n";
  std::fputs(out.c_str(), stdout);
  const bool failed = of_job ? done == 0 : done < pods->size();
  if (failed) std::fputs(PrintableLines(errors).c_str(), stderr);
  return failed ? 1 : 0;
}

}  // namespace sluice::cli
