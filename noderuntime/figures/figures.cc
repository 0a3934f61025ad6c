// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/figures/figures.h"

#include <algorithm>
#include <utility>

namespace sluice::figures {

using scheduler::EventKind;
using scheduler::Record;
using scheduler::RefusalReason;

namespace {

/// Whether the refusal is of what the job waits for. Who is turned away at the door is another
/// process than the one inside.
bool IsAnswer(const JobFigures& job, const Record& record) {
  const bool at_door = record.reason == ReasonName(RefusalReason::kSecondProcess) ||
                       (record.reason == ReasonName(RefusalReason::kRefused) && job.claim != 0);
  return !at_door;
}

}  // namespace

void Figures::Apply(const Record& record) {
  loans_.Apply(record);
  if (record.event == EventKind::kPolicy) ++policy_switches_;
  if (record.job == scheduler::kNoJob || record.job == scheduler::kBeyondBudget) return;
  JobFigures& job = jobs_[record.job];
  switch (record.event) {
    case EventKind::kWait:
      if (job.waits_since_ns == 0) job.waits_since_ns = record.t_ns;
      ++job.waits[record.reason];
      break;
    case EventKind::kGate:
      Waited(&job, record.t_ns, &job.gate_wait);
      job.claim = record.claim;
      break;
    case EventKind::kGrant:
      Waited(&job, record.t_ns, record.gate == 0 ? &job.lease_wait : &job.gate_wait);
      [[fallthrough]];
    case EventKind::kClaim:
      if (record.claim > job.claim) ++job.claim_raises;
      job.claim = std::max(job.claim, record.claim);
      break;
    case EventKind::kDeny:
      ++job.refusals[record.reason];
      if (job.waits_since_ns != 0 && IsAnswer(job, record)) {
        const bool at_gate = record.gate != 0 || job.claim == 0;
        Waited(&job, record.t_ns, at_gate ? &job.gate_wait : &job.lease_wait);
      }
      Note(&job, {record.t_ns, "refused", record.reason, record.text});
      break;
    case EventKind::kTrough:
      ++job.iterations;
      break;
    case EventKind::kMismatch:
      ++job.deviations;
      if (!record.reason.empty()) ++job.deviations_by[record.reason];
      Note(&job, {record.t_ns, "deviated", record.reason, record.text});
      break;
    case EventKind::kEvict:
      if (record.reason == ReasonName(scheduler::WaitReason::kTurn)) {
        ++job.swaps;
        break;
      }
      ++job.evictions;
      if (!record.reason.empty()) ++job.evictions_by[record.reason];
      Note(&job, {record.t_ns, "evicted", record.reason, record.text});
      break;
    case EventKind::kBringBack:
      if (record.claim == 0) break;
      ++job.returns;
      job.claim = record.claim;
      Note(&job, {record.t_ns, "returned", "", "came back from host memory"});
      break;
    case EventKind::kRelease:
      given_back_ns_[{record.job, record.release}] = record.t_ns;
      break;
    case EventKind::kFenced: {
      const auto found = given_back_ns_.find({record.job, record.release});
      if (found == given_back_ns_.end()) break;
      handover_.Add(record.t_ns - found->second);
      given_back_ns_.erase(found);
      break;
    }
    case EventKind::kDeath:
      job.waits_since_ns = job.claim = 0;
      died_ns_[record.job] = record.t_ns;
      break;
    case EventKind::kFree:
      if (const auto found = died_ns_.find(record.job); found != died_ns_.end()) {
        reclaim_.Add(record.t_ns - found->second);
        died_ns_.erase(found);
      }
      [[fallthrough]];
    case EventKind::kLeave:
      job.waits_since_ns = job.claim = 0;
      given_back_ns_.erase(given_back_ns_.lower_bound({record.job, 0}),
                           given_back_ns_.lower_bound({record.job + 1, 0}));
      break;
    case EventKind::kRestore:
      job.claim = record.claim;
      break;
    case EventKind::kPool:
    case EventKind::kPolicy:
    case EventKind::kAdmit:
    case EventKind::kLimit:
    case EventKind::kReclaim:
    case EventKind::kBase:
    case EventKind::kCopyOut:
    case EventKind::kCopyBack:
    case EventKind::kSettle:
    case EventKind::kQuiet:
    case EventKind::kBusy:
    case EventKind::kOutside:
      break;
  }
}

void Figures::Waited(JobFigures* job, uint64_t t_ns, Histogram* into) {
  into->Add(job->waits_since_ns == 0 ? 0 : t_ns - job->waits_since_ns);
  job->waits_since_ns = 0;
}

void Figures::Note(JobFigures* job, Event event) {
  if (job->events.size() >= kMostEvents) job->events.pop_front();
  job->events.push_back(std::move(event));
}

void Figures::Told(JobId id, uint64_t t_ns, std::string_view waits_for, std::string_view text) {
  Note(&jobs_[id],
       {t_ns, waits_for.empty() ? "told" : "waited", std::string(waits_for), std::string(text)});
}

void Figures::Decided(uint64_t decisions, uint64_t ns) {
  for (uint64_t i = 0; i < decisions; ++i) decision_.Add(ns / decisions);
}

void Figures::End(JobId id, const std::string& name, uint64_t t_ns) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  found->second.waits_since_ns = 0;
  ended_.push_back({id, name, t_ns, std::move(found->second)});
  jobs_.erase(found);
  if (ended_.size() <= kMostEnded) return;
  loans_.Forget(ended_.front().id);
  ended_.pop_front();
}

void Figures::Prune(uint64_t now_ns) {
  while (!ended_.empty() && now_ns - ended_.front().t_ns > kEndedForNs) {
    loans_.Forget(ended_.front().id);
    ended_.pop_front();
  }
}

const JobFigures& Figures::Of(JobId id) const {
  static const JobFigures none;
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? none : found->second;
}

}  // namespace sluice::figures
