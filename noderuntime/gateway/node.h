// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"
#include "noderuntime/cli/daemon_client.h"
#include "noderuntime/gateway/node_view.h"

namespace sluice::gateway {

/// The daemons of a node, below sluice-node's folder. Keeps nothing: each call asks anew, on
/// connections of its own, so that a daemon may be restarted at any time. For several threads.
class Node {
 public:
  explicit Node(std::string runtime_dir) : runtime_dir_(std::move(runtime_dir)) {}

  /// All GPUs by number; those whose daemon does not answer are not `up`.
  std::vector<GpuView> Look() const;

  /// The GPU that has this job and the job's index in it. kNotFound, kInvalidArgument: as
  /// cli::FindJob.
  struct Found {
    GpuView gpu;
    size_t job = 0;
  };
  Result<Found> Find(const std::string& job) const;

  /// kNotFound: there is no such GPU; kUnavailable: its daemon does not answer.
  Result<cli::DaemonClient> Connect(uint32_t gpu) const;
  /// The given ones, or all if none is given.
  std::vector<uint32_t> Numbers(const std::vector<uint32_t>& given) const;

 private:
  std::string runtime_dir_;
};

}  // namespace sluice::gateway
