// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/audit/audit.h"

#include <algorithm>

#include "scheduler/audit/brute.h"
#include "scheduler/audit/replay.h"

namespace sluice::scheduler {

namespace {

constexpr size_t kMaxViolations = 100;  // a broken log breaks every rule after the first

/// Runs the replay over the log and keeps the score.
class Auditor {
 public:
  Auditor(const Record& pool, size_t max_samples)
      : replay_(pool.units), reserve_bytes_(pool.bytes), max_samples_(max_samples) {
    report_.pool_units = pool.units;
    report_.unit_bytes = pool.unit_bytes;
    report_.policy = pool.policy;
    last_ns_ = pool.t_ns;
  }

  void Consume(size_t index, const Record& record) {
    index_ = index;
    if (record.t_ns < last_ns_) Violation("schema", "time goes backwards");
    Elapse(record.t_ns);
    Names(record);
    // The request follows what has been measured, in the lines right after the trough's.
    if (record.event != EventKind::kBase && record.event != EventKind::kLimit) Bases();
    if (record.event == EventKind::kTrough) at_trough_.push_back(record.job);
    const bool safe_before = safe_;
    const bool sums_before = safe_in_sums_;
    for (AuditViolation& violation : replay_.Apply(record))
      Violation(violation.rule, violation.text);
    if (replay_.two_holders()) ++report_.over_budget_moments;
    for (const auto& [lender, units] : replay_.lent()) {
      report_.jobs[lender].lent_units += units;
      report_.lent_bytes_within_iterations += report_.unit_bytes * units;
    }
    Budgets(record);
    Safety(record, safe_before, sums_before);
    Sample(record.t_ns);
  }

  AuditReport Finish(size_t records) {
    Bases();
    for (auto& [id, job] : report_.jobs) {
      const Time& time = times_[id];
      if (time.total_ns > 0 && time.peak > 0) {
        job.mean_over_peak = time.held_ns / static_cast<double>(time.total_ns) / time.peak;
      }
    }
    report_.records = records;
    return std::move(report_);
  }

 private:
  struct Time {
    double held_ns = 0;  // units times nanoseconds
    uint64_t total_ns = 0;
    Units peak = 0;
  };

  void Violation(const std::string& rule, const std::string& text) {
    if (report_.violations.size() < kMaxViolations)
      report_.violations.push_back({index_, rule, text});
  }

  // Before a record is applied: until then the jobs held what they held.
  void Elapse(uint64_t now) {
    const uint64_t passed = now > last_ns_ ? now - last_ns_ : 0;
    for (const auto& [id, job] : replay_.jobs()) {
      if (job.where != audit::Where::kIteration) continue;
      Time& time = times_[id];
      time.held_ns += static_cast<double>(job.held) * static_cast<double>(passed);
      time.total_ns += passed;
      time.peak = std::max(time.peak, job.held);
    }
    last_ns_ = std::max(last_ns_, now);
  }

  void Names(const Record& record) {
    if (record.event == EventKind::kAdmit || record.event == EventKind::kRestore)
      report_.jobs[record.job].name = record.name;
    if (record.event == EventKind::kTrough) ++report_.jobs[record.job].iterations;
    if (record.event == EventKind::kDeny) ++report_.jobs[record.job].denied;
  }

  /// I2, once for each trough.
  void Bases() {
    for (const JobId id : at_trough_) {
      const auto at = replay_.jobs().find(id);
      if (at == replay_.jobs().end()) continue;
      const audit::ReplayJob& job = at->second;
      if (job.where == audit::Where::kTrough && job.drained && job.held > job.request)
        ++report_.overbase_troughs;
    }
    at_trough_.clear();
  }

  void Budgets(const Record& record) {
    uint64_t held = 0;
    uint64_t outside = 0;
    for (const auto& [id, job] : replay_.jobs()) {
      held += job.held;
      AuditJob& score = report_.jobs[id];
      score.peak_units = std::max(score.peak_units, job.held);
      score.limit_units = job.limit;
      const bool dead = job.where == audit::Where::kDead;
      outside += job.outside_bytes;
      score.peak_outside_bytes = std::max(score.peak_outside_bytes, job.outside_bytes);
      if ((!dead && uint64_t{job.held} + job.outside > job.limit) ||
          (job.past_gate() && job.held > job.claim)) {
        ++report_.over_limit_moments;
        if (id == record.job)
          Violation("I1", "job " + std::to_string(id) + " holds more than its claim or its limit");
      }
    }
    if (held + replay_.free() != report_.pool_units) {
      ++report_.over_budget_moments;
      Violation("I1",
                "held and free add up to " + std::to_string(held + replay_.free()) + " units");
    }
    if (outside > reserve_bytes_ && record.event == EventKind::kOutside) {
      ++report_.over_budget_moments;
      Violation("outside", "jobs have " + std::to_string(outside) +
                               " bytes outside the pool, where the GPU has " +
                               std::to_string(reserve_bytes_));
    }
    const bool admits = record.event == EventKind::kAdmit || record.event == EventKind::kRestore ||
                        record.event == EventKind::kLimit || record.event == EventKind::kSettle;
    if (admits && !replay_.AdmissionHolds()) {
      Violation("I0", "a limit does not fit beside the requests of the others");
    }
  }

  /// I3 is a duty of decisions. Jobs break it too, by keeping memory at their trough that they had
  /// not held there, or by losing their profile: that is counted, and from then on a decision must
  /// only not make it worse.
  void Safety(const Record& record, bool safe_before, bool sums_before) {
    const bool decision = record.event == EventKind::kGate || record.event == EventKind::kGrant ||
                          record.event == EventKind::kClaim ||
                          record.event == EventKind::kReclaim ||
                          record.event == EventKind::kBringBack;
    const bool changes =
        decision || record.event == EventKind::kTrough || record.event == EventKind::kRestore ||
        record.event == EventKind::kMismatch || record.event == EventKind::kEvict ||
        record.event == EventKind::kDeath || record.event == EventKind::kSettle ||
        record.event == EventKind::kFree || record.event == EventKind::kLimit;
    if (!changes) return;
    const size_t past_gate = replay_.PastGate();
    if (past_gate > audit::kMaxParties) {
      ++report_.unchecked_orders;
      return;
    }
    safe_ = replay_.Safe(false);
    safe_in_sums_ = safe_ || replay_.Safe(true);
    if (safe_) return;
    if (!decision) {
      if (safe_before) ++report_.broken_promises;
      return;
    }
    const std::string what =
        std::string(EventName(record.event)) + " to job " + std::to_string(record.job);
    if ((record.event == EventKind::kGate && record.gate == 0) ||
        record.event == EventKind::kBringBack) {
      if (record.sums_only && safe_in_sums_ && Alone(record.job)) return;
      Violation("I4", what + " opens a gate although no order completes everybody");
    } else if (safe_before || (sums_before && !safe_in_sums_)) {
      Violation("I3", what + " leaves no order that completes everybody");
    }
  }

  /// Nobody else past its gate will come back to a trough.
  bool Alone(JobId job) const {
    return std::all_of(replay_.jobs().begin(), replay_.jobs().end(), [job](const auto& entry) {
      return entry.first == job || entry.second.where != audit::Where::kIteration;
    });
  }

  void Sample(uint64_t t_ns) {
    if (max_samples_ == 0 || records_seen_++ % stride_ != 0) return;
    AuditSample sample;
    sample.t_ns = t_ns;
    sample.free = replay_.free();
    for (const auto& [id, job] : replay_.jobs()) sample.held[id] = job.held;
    report_.series.push_back(std::move(sample));
    // Full: every second one goes, and from now on only every second is taken. The log's length is
    // not known in advance, and the samples stay even over all of it.
    if (report_.series.size() <= max_samples_) return;
    for (size_t i = 1; 2 * i < report_.series.size(); ++i)
      report_.series[i] = std::move(report_.series[2 * i]);
    report_.series.resize((report_.series.size() + 1) / 2);
    stride_ *= 2;
  }

  audit::Replay replay_;
  AuditReport report_;
  uint64_t reserve_bytes_;
  size_t max_samples_;
  size_t index_ = 0;
  size_t records_seen_ = 0;
  size_t stride_ = 1;
  uint64_t last_ns_ = 0;
  bool safe_ = true;
  bool safe_in_sums_ = true;
  std::map<JobId, Time> times_;
  std::vector<JobId> at_trough_;  // came there, and not judged yet
};

}  // namespace

AuditReport Audit(const std::vector<Record>& records, size_t max_samples) {
  if (records.empty() || records[0].event != EventKind::kPool || records[0].units == 0) {
    AuditReport report;
    report.records = records.size();
    report.violations.push_back({0, "schema", "the log does not begin with a pool record"});
    return report;
  }
  Auditor auditor(records[0], max_samples);
  for (size_t i = 1; i < records.size(); ++i) auditor.Consume(i, records[i]);
  return auditor.Finish(records.size());
}

}  // namespace sluice::scheduler
