// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/look/run_report.h"

#include <algorithm>
#include <map>
#include <set>

#include "common/bytes.h"
#include "noderuntime/cli/offline/format.h"
#include "noderuntime/cli/text_columns.h"

namespace sluice::cli {
namespace {

using scheduler::EventKind;
using scheduler::JobId;
using scheduler::Record;

/// Who was where, and for how long.
class Times {
 public:
  void Apply(const Record& record) {
    Pass(record.t_ns);
    if (record.event == EventKind::kPool || record.event == EventKind::kPolicy) {
      policies_.emplace_back(record.policy, 0);
    }
    if (record.job == scheduler::kNoJob || record.job == scheduler::kBeyondBudget) return;
    Job& job = jobs_[record.job];
    if (job.first_ns == kNever) job.first_ns = record.t_ns;
    job.last_ns = record.t_ns;
    if (!record.name.empty()) job.name = record.name;
    switch (record.event) {
      case EventKind::kAdmit:
      case EventKind::kRestore:
        there_.insert(record.job);
        most_ = std::max(most_, there_.size());
        if (there_.size() == most_) crowd_ = there_;
        if (record.event == EventKind::kRestore && record.claim > 0) Enter(record);
        break;
      case EventKind::kGate:
        if (record.gate == 0) Enter(record);
        break;
      case EventKind::kTrough:
        if (job.entered_ns != kNever && job.profiled) {
          job.iterations_ns.push_back(record.t_ns - job.entered_ns);
        }
        Leave(record.job);
        break;
      case EventKind::kEvict:
        Leave(record.job);
        break;
      case EventKind::kBringBack:
        if (record.claim == 0) break;  // at its trough
        Enter(record);
        job.profiled = false;  // the time that it was away belongs to no iteration
        break;
      case EventKind::kDeath:
      case EventKind::kLeave:
      case EventKind::kFree:
        Leave(record.job);
        there_.erase(record.job);
        break;
      default:
        break;
    }
  }

  static constexpr uint64_t kNever = ~uint64_t{0};
  struct Job {
    std::string name;
    uint64_t first_ns = kNever;
    uint64_t last_ns = 0;
    uint64_t entered_ns = kNever;
    bool profiled = false;
    uint64_t inside_ns = 0;
    std::vector<uint64_t> iterations_ns;
  };

  std::map<JobId, Job> jobs_;
  std::vector<std::pair<std::string, uint64_t>> policies_;
  std::set<JobId> there_;
  std::set<JobId> crowd_;  // the jobs at a moment at which most of them were there
  size_t most_ = 0;
  uint64_t together_ns_ = 0;
  uint64_t busy_ns_ = 0;

 private:
  /// The pool's record is written before anybody looks at a clock.
  void Pass(uint64_t now_ns) {
    if (now_ns == 0) return;
    const uint64_t passed = last_ns_ == kNever ? 0 : now_ns - last_ns_;
    last_ns_ = now_ns;
    if (!policies_.empty()) policies_.back().second += passed;
    if (!inside_.empty()) busy_ns_ += passed;
    if (inside_.size() > 1) together_ns_ += passed;
    for (const JobId id : inside_) jobs_[id].inside_ns += passed;
  }
  void Enter(const Record& record) {
    inside_.insert(record.job);
    jobs_[record.job].entered_ns = record.t_ns;
    jobs_[record.job].profiled = record.profiled;
  }
  void Leave(JobId id) {
    inside_.erase(id);
    jobs_[id].entered_ns = kNever;
  }

  std::set<JobId> inside_;
  uint64_t last_ns_ = kNever;
};

uint64_t Quantile(std::vector<uint64_t> values, size_t tenths) {
  if (values.empty()) return 0;
  const size_t at = std::min(values.size() - 1, values.size() * tenths / 10);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

std::string Seconds(uint64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1'000'000) return Format("%.0f us", value / 1e3);
  if (ns < 1'000'000'000) return Format("%.1f ms", value / 1e6);
  return Format("%.2f s", value / 1e9);
}

double Share(uint64_t part, uint64_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

/// How many of the crowd have room side by side if each one's whole peak is its own: the smallest
/// first, which is the most there can be.
uint64_t FitWithout(const std::vector<ReportedJob>& jobs, const std::set<JobId>& crowd,
                    uint64_t pool_bytes) {
  std::vector<uint64_t> peaks;
  for (const ReportedJob& job : jobs) {
    if (crowd.contains(job.id)) peaks.push_back(job.peak_bytes);
  }
  std::sort(peaks.begin(), peaks.end());
  uint64_t sum = 0;
  uint64_t count = 0;
  for (const uint64_t peak : peaks) {
    sum += peak;
    if (sum > pool_bytes) break;
    ++count;
  }
  return count;
}

}  // namespace

Result<RunReport> ReportOf(const std::string& source, const std::vector<Record>& records) {
  if (records.empty() || records.front().event != EventKind::kPool) {
    return Status(StatusCode::kInvalidArgument,
                  source + ": an event log begins with the event 'pool'");
  }
  const scheduler::AuditReport audit = scheduler::Audit(records);
  figures::Figures counted(audit.pool_units);
  Times times;
  for (const Record& record : records) {
    counted.Apply(record);
    times.Apply(record);
  }
  RunReport report;
  report.source = source;
  report.unit_bytes = audit.unit_bytes;
  report.pool_bytes = audit.pool_units * audit.unit_bytes;
  report.records = records.size();
  const auto first = std::find_if(records.begin(), records.end(),
                                  [](const Record& record) { return record.t_ns > 0; });
  report.began_ns = first == records.end() ? 0 : first->t_ns;
  report.lasted_ns = records.back().t_ns - std::min(records.back().t_ns, report.began_ns);
  report.policies = times.policies_;
  report.loans = counted.loans().pairs();
  report.together_ns = times.together_ns_;
  report.busy_ns = times.busy_ns_;
  report.most_jobs = times.most_;
  report.lent_bytes = audit.lent_bytes_within_iterations;
  report.series = audit.series;
  report.violations = audit.violations.size();
  for (const auto& [id, seen] : times.jobs_) {
    ReportedJob job;
    job.id = id;
    job.name = seen.name;
    job.figures = counted.Of(id);
    if (const auto found = audit.jobs.find(id); found != audit.jobs.end()) {
      job.peak_bytes = found->second.peak_units * audit.unit_bytes;
      job.limit_bytes = found->second.limit_units * audit.unit_bytes;
      job.held_over_peak = found->second.mean_over_peak;
    }
    job.iterations = job.figures.iterations;
    job.iteration_median_ns = Quantile(seen.iterations_ns, 5);
    job.iteration_p90_ns = Quantile(seen.iterations_ns, 9);
    job.there_ns = seen.last_ns - seen.first_ns;
    job.inside_ns = seen.inside_ns;
    job.waited_ns = job.figures.gate_wait.sum_ns() + job.figures.lease_wait.sum_ns();
    job.lent_bytes = counted.loans().lent_ever(id) * audit.unit_bytes;
    job.borrowed_bytes = counted.loans().borrowed_ever(id) * audit.unit_bytes;
    report.peaks_bytes += job.peak_bytes;
    report.jobs.push_back(std::move(job));
  }
  for (const scheduler::AuditSample& sample : audit.series) {
    report.most_held_bytes =
        std::max(report.most_held_bytes, (audit.pool_units - sample.free) * audit.unit_bytes);
  }
  report.fit_without = FitWithout(report.jobs, times.crowd_, report.pool_bytes);
  return report;
}

std::string ReportText(const RunReport& report) {
  std::string text =
      report.source + ": " + Seconds(report.lasted_ns) + ", pool " + FormatBytes(report.pool_bytes);
  for (const auto& [policy, ns] : report.policies) text += ", " + policy + " for " + Seconds(ns);
  text += "\n\n";
  std::vector<std::vector<std::string>> rows = {{"JOB", "NAME", "ITERATIONS", "MEDIAN", "P90",
                                                 "PEAK", "LENT", "BORROWED", "WAITED",
                                                 "OF ITS TIME"}};
  for (const ReportedJob& job : report.jobs) {
    rows.push_back({std::to_string(job.id), job.name, std::to_string(job.iterations),
                    Seconds(job.iteration_median_ns), Seconds(job.iteration_p90_ns),
                    FormatBytes(job.peak_bytes), FormatBytes(job.lent_bytes),
                    FormatBytes(job.borrowed_bytes), Seconds(job.waited_ns),
                    Format("%.1f %%", 100 * Share(job.waited_ns, job.there_ns))});
  }
  text += AlignColumns(rows, 0, 2, 9);
  text += "\nwhat sharing saved\n";
  text += "  memory: the peaks add up to " + FormatBytes(report.peaks_bytes) + ", and at most " +
          FormatBytes(report.most_held_bytes) + " were held at once; " +
          FormatBytes(report.lent_bytes) + " were lent within iterations\n";
  text += Format("  jobs: %llu at once; with their whole peaks reserved, %llu of them have room\n",
                 static_cast<unsigned long long>(report.most_jobs),
                 static_cast<unsigned long long>(report.fit_without));
  text += "  time: two or more were inside their iterations for " + Seconds(report.together_ns) +
          Format(", %.1f %% of the time in which anybody was\n",
                 100 * Share(report.together_ns, report.busy_ns));
  text += report.violations == 0 ? "  every promise was kept (sluice check-log)\n"
                                 : "  " + std::to_string(report.violations) +
                                       " promises were broken: sluice check-log names them\n";
  return text;
}

}  // namespace sluice::cli
