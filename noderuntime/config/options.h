// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/bytes.h"
#include "common/status.h"

namespace sluice::config {

/// What the daemon was asked to do, with its defaults.
struct Options {
  std::string runtime_dir;
  uint32_t gpu = 0;
  std::optional<uint64_t> pool_bytes;     // default: the device minus the reserve
  std::optional<uint64_t> reserve_bytes;  // default: an eighth of the device, at most 2 GiB
  uint64_t context_bytes = 0;             // what a context is charged for
  /// Host memory for jobs that are evicted; 0: none. Default: see PlanHostMemory.
  std::optional<uint64_t> host_memory_bytes;
  uint64_t unit_bytes = 8 * kMiB;
  uint64_t handle_bytes = 8 * kMiB;
  bool unit_by_pool = false;  // both follow from the pool (SizeUnits)
  std::string policy = "flow";
  uint32_t lanes = 2;
  /// Bases in the pool at once, the others in host memory by turns: a number, `auto` (with the
  /// policy `auto`, which finds one) or `all`.
  std::string residents = "all";
  double slice_s = 1;            // that one of the others is there, where residents is a number
  std::string claims = "steps";  // what others may count on of jobs that can be evicted
  std::string lend = "demand";
  std::string credit = "on";
  std::optional<uint32_t> credit_us;  // none: by the profile
  std::string event_log;              // empty: none
  std::string oracle;                 // empty: none
  bool poison = false;
  std::optional<double> idle_exit_s;
  double lease_wait_s = 30;
  double patience_s = 120;  // with a job that shows no iteration and no sign of life
  int ready_fd = -1;
  std::string grants;  // folder of containers' grants; empty: launchers register jobs
  /// wait: nobody uses a grant before its terms are there; off: it is worth what its record says.
  std::string terms = "off";
  std::string keeper;  // program that keeps descriptors over the daemon's death; empty: none
  double keeper_linger_s = 30;
};

/// Everything that can be said without knowing the device, all faults in one message, each naming
/// its field, its value and what is allowed.
Status Validate(const Options& options);

/// Where nobody said how large units and handles are: a unit is a handle, so that what lies apart
/// can be mapped side by side, and a pool has some thousand of them, as each client maps them all.
void SizeUnits(uint64_t device_bytes, Options* options);

struct PoolPlan {
  uint64_t bytes = 0;
  uint32_t handles = 0;
  uint32_t units = 0;
};

/// The pool on a device, in whole handles. The error names the field that does not fit it.
Result<PoolPlan> PlanPool(const Options& options, uint64_t device_bytes, uint64_t granularity);

inline constexpr std::string_view kAllResidents = "all";
inline constexpr std::string_view kAutoResidents = "auto";
/// What Options::residents says of every policy but `auto`; 0: all, or no number.
uint32_t ResidentsOf(const Options& options);

/// Host memory for evicted jobs, in bytes. Unless given, as much as the pool, but at most a quarter
/// of the machine's memory, which programs need for themselves. kInvalidArgument: more than the
/// machine has.
Result<uint64_t> PlanHostMemory(const Options& options, uint64_t pool_bytes,
                                uint64_t machine_bytes);

}  // namespace sluice::config
