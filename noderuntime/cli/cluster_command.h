// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "noderuntime/cli/environment.h"

namespace sluice::cli {

/// `kubectl sluice [OPTIONS] COMMAND ...`: a command of this program, on the cluster's nodes.
struct ClusterCommand {
  std::vector<std::string> access;   // options of kubectl's own: --context, --kubeconfig, ...
  std::string space;                 // namespace of Sluice; empty: looked for in all
  std::string node;                  // empty: all nodes
  std::vector<std::string> command;  // of this program
  bool wants_help = false;
  bool wants_version = false;
};

/// kInvalidArgument: what is wrong and what is allowed. What changes a node is refused without
/// --node or --all-nodes; a job is named by its pod, which is where it is.
Result<ClusterCommand> ParseClusterCommand(const std::vector<std::string>& arguments);

/// One of sluice-node's pods.
struct NodePod {
  std::string space;
  std::string name;
  std::string node;
  friend bool operator==(const NodePod&, const NodePod&) = default;
};

/// Of kubectl's list as JSON, those that run, by node. kUnavailable: it is none.
Result<std::vector<NodePod>> NodePodsOf(const std::string& json);

/// Runs it by kubectl, with the rights of who calls; returns the program's exit code. `kubectl`:
/// the program, looked up in PATH.
int RunClusterCommand(const std::vector<std::string>& arguments, const Environment& environment,
                      const std::string& kubectl = "kubectl");

}  // namespace sluice::cli
