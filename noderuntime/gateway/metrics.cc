// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gateway/metrics.h"

#include <string>

namespace sluice::gateway {
namespace {

prometheus::ClientMetric Bypassed(const GpuView& gpu, const char* of, uint64_t count) {
  prometheus::ClientMetric metric;
  metric.label = {{"gpu", std::to_string(gpu.number)}, {"uuid", gpu.uuid}, {"of", of}};
  metric.counter.value = static_cast<double>(count);
  return metric;
}

}  // namespace

std::vector<prometheus::MetricFamily> MetricsOf(const std::vector<GpuView>& gpus) {
  prometheus::MetricFamily up{
      "sluice_up", "Whether the GPU's daemon answers", prometheus::MetricType::Gauge, {}};
  prometheus::MetricFamily bypassed{"sluice_bypassed_processes_total",
                                    "Processes found on the GPU without Sluice's library",
                                    prometheus::MetricType::Counter,
                                    {}};
  for (const GpuView& gpu : gpus) {
    prometheus::ClientMetric answers;
    answers.label = {{"gpu", std::to_string(gpu.number)}};
    answers.gauge.value = gpu.up ? 1 : 0;
    up.metric.push_back(std::move(answers));
    if (!gpu.up) continue;
    bypassed.metric.push_back(Bypassed(gpu, "pod", gpu.bypassed_pods));
    bypassed.metric.push_back(Bypassed(gpu, "other", gpu.bypassed_others));
  }
  return {std::move(up), std::move(bypassed)};
}

}  // namespace sluice::gateway
