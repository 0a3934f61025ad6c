// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <functional>
#include <vector>

#include "common/metrics/family.h"
#include "noderuntime/gateway/node_view.h"

/// Every metric that the gateway serves: what it is called, what it is, and what of a daemon's
/// status it shows. What a row does not find there it does not add.
namespace sluice::gateway {

template <typename View>
struct Row {
  metrics::Metric metric;
  std::function<void(const View&, metrics::Family*)> fill;
};
template <typename View>
using Table = std::vector<Row<View>>;

/// Of a daemon, whether it answers or not. Labels: node, gpu.
const Table<GpuView>& DaemonTable();
/// Labels of these two: node, gpu, UUID.
const Table<GpuView>& PoolTable();
const Table<GpuView>& SchedulerTable();
/// Labels: node, gpu, UUID, namespace, pod, container, id.
const Table<JobView>& JobTable();
const Table<JobView>& JobCountsTable();
/// Labels: node, gpu, and for lender_ and borrower_ each namespace, pod, id. There may be hundreds:
/// the GPU's UUID and the containers, which number and id say, too, would be a third of them.
const Table<LoanView>& LoanTable();

/// The tables as a page shows them.
std::vector<metrics::Group> MetricGroups();

}  // namespace sluice::gateway
