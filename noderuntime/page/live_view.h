// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/status.h"

namespace sluice::page {

/// What was held in one step of time, and until the next one. The latest comes again while it
/// lasts.
struct Frame {
  uint64_t t_ms = 0;  // its beginning, Unix time
  std::string json;   // [t_ms, [job, units, job, units, ...]]
};

/// One answer of a daemon, ready to be shown.
struct LiveView {
  uint64_t seq = 0;  // the daemon's cursor
  uint64_t now_ms = 0;
  std::string json;  // an object, all but the frames
  std::vector<Frame> frames;
};

/// The one place in which a daemon's words become the page's: everything that the page shows at 10
/// Hz is in `json`, under the daemon's own names, with what an older daemon does not say as 0,
/// empty or null, and texts cut to what can be shown. Adds `gpu`, `held` (the sum over the jobs)
/// and `lent` (the sum over the loans). Pure. kUnavailable: it is no such answer.
Result<LiveView> ReadLive(const std::string& daemon_json, uint32_t gpu);

/// The view with frames as one JSON object.
std::string WithFrames(const std::string& view_json, std::span<const Frame> frames);

/// What a daemon's status says of one job, running or ended: {"job": its entry, "bounds_ns": those
/// of its histograms, "gpu", "policy", "lanes"}. kNotFound: it has no such job. Pure.
Result<std::string> ReadJob(const std::string& status_json, uint32_t job);

/// How a GPU is named and whether it answers, from its daemon's status: {"gpu", "number" (the
/// daemon's own), "up", "name", "uuid", "version", "pool", "policy", "lanes", "jobs"}. Pure.
std::string ReadGpu(const Result<std::string>& status_json, uint32_t gpu);

}  // namespace sluice::page
