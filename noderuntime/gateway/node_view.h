// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"

namespace sluice::gateway {

/// A job as its daemon's status tells of it. Amounts in bytes.
struct JobView {
  uint32_t id = 0;
  std::string name;
  std::string phase;
  uint64_t request_bytes = 0;
  uint64_t limit_bytes = 0;
  uint64_t held_bytes = 0;
  uint64_t peak_held_bytes = 0;
  uint64_t outside_bytes = 0;
  std::string waits_for;  // empty: for nothing
  uint64_t waits_ms = 0;
};

/// A GPU and its daemon.
struct GpuView {
  uint32_t number = 0;
  bool up = false;  // its daemon answers; else nothing below is known
  std::string uuid;
  std::string name;
  std::string version;
  uint64_t pool_bytes = 0;
  uint64_t budget_bytes = 0;
  uint64_t free_bytes = 0;
  std::string policy;
  uint32_t lanes = 0;
  bool draining = false;
  uint64_t bypassed_pods = 0;
  uint64_t bypassed_others = 0;
  std::vector<JobView> jobs;
};

/// What a daemon's status (JSON) says. What it does not say, being of another version, is 0 or
/// empty. kUnavailable: it is no status.
Result<GpuView> ParseStatus(const std::string& json);

}  // namespace sluice::gateway
