// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gateway/metrics.h"

#include <deque>
#include <map>
#include <set>

#include "noderuntime/gateway/job_labels.h"
#include "noderuntime/gateway/metric_table.h"

namespace sluice::gateway {
namespace {

/// Something that has samples, and their labels.
template <typename View>
struct Entry {
  const View* view;
  metrics::LabelText labels;
};
template <typename View>
using Entries = std::vector<Entry<View>>;

template <typename View>
void Fill(const Table<View>& table, const Entries<View>& entries,
          std::vector<prometheus::MetricFamily>* out) {
  for (const Row<View>& row : table) {
    metrics::Family family(row.metric);
    family.Reserve(entries.size());
    for (const Entry<View>& entry : entries) {
      family.SetCommon(entry.labels);
      row.fill(*entry.view, &family);
    }
    if (!family.empty()) out->push_back(std::move(family).Take());
  }
}

/// A GPU's jobs and loans.
class Parts {
 public:
  /// `common`: labels of its jobs, `of_loans`: and of its loans.
  Parts(const GpuView& gpu, metrics::LabelText common, metrics::LabelText of_loans)
      : common_(std::move(common)), of_loans_(std::move(of_loans)) {
    for (const JobView& job : gpu.jobs) AddJob(job);
    if (gpu.ended.has_value()) AddEnded(*gpu.ended);
    if (rest_.held_bytes.has_value() || rest_.lent_bytes.has_value()) AddSeries(rest_, JobLabels());
    std::set<std::pair<uint32_t, uint32_t>> pairs;
    for (const LoanView& loan : gpu.loans) {
      if (loans_.size() == kMostLoans || !pairs.insert({loan.lender, loan.borrower}).second) {
        continue;
      }
      AddLoan(loan);
    }
  }
  const Entries<JobView>& jobs() const { return jobs_; }
  const Entries<LoanView>& loans() const { return loans_; }

 private:
  void AddJob(const JobView& job) {
    const JobLabels labels = LabelsOf(job.name);
    // Two samples of the same name and labels cost Prometheus the whole answer.
    if (!known_.emplace(job.id, labels).second) return;
    jobs_.size() < kMostJobs ? AddSeries(job, labels) : AddToRest(job);
  }
  void AddSeries(const JobView& job, const JobLabels& labels) {
    jobs_.push_back({&job, common_});
    jobs_.back().labels.Add({{"namespace", labels.space},
                             {"pod", labels.pod},
                             {"container", labels.container},
                             {"id", std::to_string(job.id)}});
  }
  /// What adds up over all jobs goes on to do so.
  void AddToRest(const JobView& job) {
    for (Figure JobView::*figure :
         {&JobView::held_bytes, &JobView::lent_bytes, &JobView::borrowed_bytes}) {
      if ((job.*figure).has_value()) rest_.*figure = (rest_.*figure).value_or(0) + *(job.*figure);
    }
  }
  /// `list`: in the order in which they ended.
  void AddEnded(const std::vector<JobView>& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      const JobView& job = list[i];
      // What is lent has two ends, and the sums of both are one.
      const bool counts = job.lent_bytes.value_or(0) > 0 || job.borrowed_bytes.value_or(0) > 0;
      if (counts || i + kMostEnded >= list.size()) {
        AddJob(job);
      } else {
        known_.emplace(job.id, LabelsOf(job.name));
      }
    }
  }
  void AddLoan(const LoanView& loan) {
    const JobLabels lender = Known(loan.lender);
    const JobLabels borrower = Known(loan.borrower);
    loans_.push_back({&loan, of_loans_});
    loans_.back().labels.Add({{"lender_namespace", lender.space},
                              {"lender_pod", lender.pod},
                              {"lender_id", std::to_string(loan.lender)},
                              {"borrower_namespace", borrower.space},
                              {"borrower_pod", borrower.pod},
                              {"borrower_id", std::to_string(loan.borrower)}});
  }
  JobLabels Known(uint32_t id) const {
    const auto found = known_.find(id);
    return found != known_.end() ? found->second : JobLabels();
  }

  const metrics::LabelText common_;
  const metrics::LabelText of_loans_;
  std::map<uint32_t, JobLabels> known_;
  JobView rest_;  // of jobs that have no series of their own
  Entries<JobView> jobs_;
  Entries<LoanView> loans_;
};

}  // namespace

std::vector<prometheus::MetricFamily> MetricsOf(const std::string& node,
                                                const std::vector<GpuView>& gpus) {
  const std::string node_label = metrics::LabelValue(node);
  Entries<GpuView> all;
  Entries<GpuView> up;
  Entries<JobView> jobs;
  Entries<LoanView> loans;
  std::deque<Parts> all_parts;  // which entries point into
  for (const GpuView& gpu : gpus) {
    const metrics::LabelText place({{"node", node_label}, {"gpu", std::to_string(gpu.number)}});
    all.push_back({&gpu, place});
    if (!gpu.up) continue;
    up.push_back(all.back());
    up.back().labels.Add({{"UUID", metrics::LabelValue(gpu.uuid)}});
    const Parts& parts = all_parts.emplace_back(gpu, up.back().labels, place);
    jobs.insert(jobs.end(), parts.jobs().begin(), parts.jobs().end());
    loans.insert(loans.end(), parts.loans().begin(), parts.loans().end());
  }
  std::vector<prometheus::MetricFamily> out;
  Fill(DaemonTable(), all, &out);
  Fill(PoolTable(), up, &out);
  Fill(SchedulerTable(), up, &out);
  Fill(JobTable(), jobs, &out);
  Fill(JobCountsTable(), jobs, &out);
  Fill(LoanTable(), loans, &out);
  return out;
}

}  // namespace sluice::gateway
