// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "noderuntime/gateway/node_view.h"

namespace sluice::gateway {

/// What the node's GPUs are, as Prometheus reads it. A daemon that does not answer is a gauge of 0
/// and no other figure: a counter that is not there is no counter at 0. Pure.
///
///   sluice_up{gpu}                                  1: its daemon answers
///   sluice_bypassed_processes_total{gpu,uuid,of}    found on the GPU without the library; of: pod,
///   other
std::vector<prometheus::MetricFamily> MetricsOf(const std::vector<GpuView>& gpus);

}  // namespace sluice::gateway
