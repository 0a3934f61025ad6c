// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gateway/metric_table.h"

namespace sluice::gateway {
namespace {

template <typename View>
metrics::Group GroupOf(const char* title, const char* labels, const Table<View>& table) {
  metrics::Group group = {title, labels, {}};
  for (const Row<View>& row : table) group.metrics.push_back(row.metric);
  return group;
}

}  // namespace

std::vector<metrics::Group> MetricGroups() {
  static constexpr char kOfJob[] = "node, gpu, UUID, namespace, pod, container, id";
  return {GroupOf("Daemons", "node, gpu", DaemonTable()),
          GroupOf("Memory of a GPU", "node, gpu, UUID", PoolTable()),
          GroupOf("Decisions on a GPU", "node, gpu, UUID", SchedulerTable()),
          GroupOf("Jobs", kOfJob, JobTable()),
          GroupOf("Counts of jobs", kOfJob, JobCountsTable()),
          GroupOf("Loans",
                  "node, gpu, lender_namespace, lender_pod, lender_id, borrower_namespace, "
                  "borrower_pod, borrower_id",
                  LoanTable())};
}

}  // namespace sluice::gateway
