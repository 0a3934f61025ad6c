// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

#include "common/metrics/family.h"
#include "noderuntime/gateway/node_view.h"

namespace sluice::gateway {

/// Of each GPU so many jobs, those that ended among them, have series of their own; what further
/// ones hold, lend and borrow is told of together, as of a job 0.
constexpr size_t kMostJobs = 256;
/// And so many of those that ended, the latest ones: they are there for one scrape more.
constexpr size_t kMostEnded = 8;
/// And so many loans: as many as a daemon tells apart.
constexpr size_t kMostLoans = 257;

/// What the node's GPUs are, as Prometheus reads it, by the tables of metric_table.h. A daemon that
/// does not answer is a gauge of 0 and no other figure, and what one of another version does not
/// tell is left out. `node`: the node's name. Pure.
std::vector<prometheus::MetricFamily> MetricsOf(const std::string& node,
                                                const std::vector<GpuView>& gpus);

}  // namespace sluice::gateway
