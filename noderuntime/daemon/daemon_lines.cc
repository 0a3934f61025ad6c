// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What clients may make the daemon write into its log, and how much of it.

#include "common/log/log.h"
#include "noderuntime/daemon/daemon.h"

namespace sluice::noded {

void Daemon::SayOfJob(flow::JobId job, logging::Level level, const std::string& text) {
  const auto entry = jobs_.find(job);
  if (entry == jobs_.end() || !logging::Writes(level)) return;
  if (!entry->second.lines.Take(NowNs())) return;
  logging::Write(level, "job " + std::to_string(job) + ": " + text);
}

void Daemon::SayOfLaunchers(logging::Level level, const std::string& text) {
  if (logging::Writes(level) && launcher_lines_.Take(NowNs())) logging::Write(level, text);
}

void Daemon::SayLeftOut(uint64_t now_ns) {
  if (const uint64_t count = launcher_lines_.TakeLeftOut(now_ns); count > 0) {
    logging::Warn("{} more lines about launchers were left out", count);
  }
  for (auto& [id, job] : jobs_) {
    if (const uint64_t count = job.lines.TakeLeftOut(now_ns); count > 0) {
      logging::Warn("job {}: {} more lines of it were left out", id, count);
    }
  }
}

}  // namespace sluice::noded
