// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "noderuntime/figures/figures.h"
#include "noderuntime/flow/flow.h"
#include "noderuntime/gpu/device.h"
#include "noderuntime/hosttier/host_tier.h"
#include "noderuntime/tuner/tuner.h"

namespace sluice::noded {

/// The daemon's own share of a lease: from the frame read to the answer written, for leases that
/// were answered at once. The mean contains the times at which the system ran somebody else in
/// between; the median does not.
class ServiceTimes {
 public:
  void Add(uint64_t ns);
  uint64_t count() const { return count_; }
  uint64_t mean_ns() const { return count_ == 0 ? 0 : total_ns_ / count_; }
  /// To an eighth of itself.
  uint64_t median_ns() const;

 private:
  static constexpr size_t kPerDoubling = 8;
  uint64_t count_ = 0;
  uint64_t total_ns_ = 0;
  std::array<uint64_t, 64 * kPerDoubling> buckets_ = {};
};

/// What the daemon knows of a job beside the flow.
struct JobFacts {
  std::string name;
  pid_t pid = 0;
  bool connected = false;
  uint64_t limit_bytes = 0;
  uint64_t request_bytes = 0;
  std::vector<pid_t> processes = {};  // that came to its socket and are there
  bool unseen = false;                // it is on the GPU and has not opened a session
};

/// How many were found that use the GPU past the daemon.
struct BypassCounts {
  uint64_t pods = 0;    // in containers of pods
  uint64_t others = 0;  // in none
};

/// What outlives the daemon, if it is there.
struct KeeperFacts {
  bool there = false;
  pid_t pid = 0;            // where it is there
  uint64_t losses = 0;      // of keepers of this daemon
  uint64_t missing_ns = 0;  // how long there has been none
};

/// What the daemon knows of itself beside the flow.
struct NodeFacts {
  uint32_t gpu = 0;
  uint64_t handle_bytes = 0;
  bool draining = false;
  std::optional<BypassCounts> bypassed = {};  // none: nobody looks
  uint64_t made_bytes = 0;                    // the pool, as the driver gave it
  uint64_t context_bytes = 0;  // of contexts that nobody is charged for: the daemon's own
  std::optional<uint64_t> used_bytes = {};        // of the GPU, as NVML says
  std::map<std::string, uint64_t> sessions = {};  // by version of the protocol
  bool adopted = false;                           // it took over from a daemon that died
  std::optional<KeeperFacts> keeper = {};         // none: it is not to have one
  int64_t unix_offset_ns = 0;                     // from its clock to the time since 1970
  uint64_t started_ns = 0;
};

/// `jobs`, and those that only the ledger has: of a daemon before this one. Nobody speaks for them,
/// and their last holders still have their memory.
std::map<flow::JobId, JobFacts> WithLedgers(const flow::Flow& flow,
                                            std::map<flow::JobId, JobFacts> jobs);

/// The answer to Status: one JSON object, amounts in bytes. `tuner`: nullptr unless under `auto`.
/// `events`: whether what happened to each job lately is in it.
/// Of all jobs: what they hold, what is free and what is kept beyond the budget is the pool.
std::string StatusJson(const flow::Flow& flow, const std::map<flow::JobId, JobFacts>& jobs,
                       const gpu::DeviceInfo& device, const NodeFacts& node,
                       const hosttier::HostTier& host_tier, const figures::Figures& figures,
                       const ServiceTimes& service, const tuner::Tuner* tuner, uint64_t now_ns,
                       bool events);

/// "unprofiled", "waiting", "resting", ...: where a job stands, for people and programs.
std::string PhaseOf(const flow::Flow& flow, flow::JobId job, bool connected);

}  // namespace sluice::noded
