// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What a scrape costs on a GPU with 64 jobs: from the daemon's answer to the text that Prometheus
// gets. Ends with 1 when the goal is missed.
#include <prometheus/text_serializer.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <sstream>

#include "bench/busy_status.h"
#include "noderuntime/gateway/metrics.h"

namespace sluice::bench {
namespace {

constexpr double kMostMs = 10;

double CpuMs() {
  timespec now = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

int Run() {
  const std::string status = BusyStatus();
  size_t bytes = 0;
  // The least of several: what this thread needs, and not what else the machine does.
  double least_ms = std::numeric_limits<double>::max();
  for (int i = 0; i < 20; ++i) {
    const double began = CpuMs();
    const Result<gateway::GpuView> gpu = gateway::ParseStatus(status);
    if (!gpu.ok()) return 1;
    std::ostringstream out;
    prometheus::TextSerializer().Serialize(out, gateway::MetricsOf("node.example.com", {*gpu}));
    bytes = out.str().size();
    least_ms = std::min(least_ms, CpuMs() - began);
  }
  std::printf("scrape of %u jobs and %u pairs: %zu kB, %.1f ms of a core (goal: %.0f ms)%s\n",
              kBusyJobs, kBusyPairs, bytes / 1000, least_ms, kMostMs,
              least_ms <= kMostMs ? "" : ": missed");
  return least_ms <= kMostMs ? 0 : 1;
}

}  // namespace
}  // namespace sluice::bench

int main() { return sluice::bench::Run(); }
