// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What clients may make the daemon write into its log, and how much of it.
#include <spdlog/spdlog.h>

#include "noderuntime/daemon/daemon.h"

namespace sluice::noded {

void Daemon::SayOfJob(flow::JobId job, spdlog::level::level_enum level, const std::string& text) {
  const auto entry = jobs_.find(job);
  if (entry == jobs_.end() || !spdlog::should_log(level)) return;
  if (entry->second.lines.Take(NowNs())) spdlog::log(level, "job {}: {}", job, text);
}

void Daemon::SayOfLaunchers(spdlog::level::level_enum level, const std::string& text) {
  if (spdlog::should_log(level) && launcher_lines_.Take(NowNs())) spdlog::log(level, "{}", text);
}

void Daemon::SayLeftOut(uint64_t now_ns) {
  if (const uint64_t count = launcher_lines_.TakeLeftOut(now_ns); count > 0) {
    spdlog::warn("{} more lines about launchers were left out", count);
  }
  for (auto& [id, job] : jobs_) {
    if (const uint64_t count = job.lines.TakeLeftOut(now_ns); count > 0) {
      spdlog::warn("job {}: {} more lines of it were left out", id, count);
    }
  }
}

}  // namespace sluice::noded
