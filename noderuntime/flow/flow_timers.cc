// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What happens because time passes: notices, bounds, and the end of patience with jobs whose
// iteration nobody can find.
#include <algorithm>
#include <utility>

#include "noderuntime/flow/flow.h"
#include "scheduler/ledger/limits.h"

namespace sluice::flow {

using scheduler::EventKind;
using scheduler::Phase;
using scheduler::Record;
using scheduler::RequestKind;

std::string Flow::WhyWaiting(JobId id) const {
  const FlowJob* job = Find(id);
  if (job == nullptr || job->waits_since_ns == 0) return "";
  const Request* request = RequestOf(id);
  if (request == nullptr) return "waiting to be admitted: " + ledger_.Holders(id);
  const std::string text =
      scheduler::WhyWaiting(ledger_, *request, options_.policy) +
      (BeginsLater(*request) ? "; the budget falls to " + ledger_.Bytes(wanted_budget()) : "");
  // The client speaks for its own job; its name adds nothing there.
  const std::string title = ledger_.Find(id) == nullptr ? "" : ledger_.Find(id)->Title() + " waits";
  return (text.starts_with(title) ? "waiting" + text.substr(title.size()) : text) +
         (WaitsForAMeasurement(id) ? "; " + scheduler::HowLong(options_.patience) : "");
}

scheduler::WaitReason Flow::WaitsBecause(const Request* request) const {
  if (request == nullptr) return scheduler::WaitReason::kAdmission;
  if (BeginsLater(*request)) return scheduler::WaitReason::kBudget;
  if (scheduler::WaitsForOwnFences(ledger_, *request)) return scheduler::WaitReason::kFence;
  return scheduler::ReasonOf(ledger_, *request, options_.policy);
}

bool Flow::WaitsForAMeasurement(JobId id) const {
  const Request* request = RequestOf(id);
  if (request == nullptr ||
      (request->kind != RequestKind::kNewcomer && request->kind != RequestKind::kGate0)) {
    return false;
  }
  return std::any_of(ledger_.jobs().begin(), ledger_.jobs().end(), [id](const auto& job) {
    return job.id != id && job.phase == Phase::kUnprofiled && !job.settled;
  });
}

void Flow::SendNotices() {
  for (auto& [id, job] : jobs_) {
    if (job.noticed || job.waits_since_ns == 0) continue;
    if (now_ns_ - job.waits_since_ns < options_.notice_after_ns) continue;
    job.noticed = true;
    // What the program is told stands in the log, even if it is its own GPU that it waits for.
    LogWait(id, &job, RequestOf(id));
    sink_->Notice(id, job.answer.has_value() ? job.answer->seq : 0,
                  {WhyWaiting(id), About::kWait, ReasonName(WaitsBecause(id))});
  }
}

void Flow::DenyOverdue() {
  const auto others_return = [this](JobId job) {
    return std::any_of(ledger_.jobs().begin(), ledger_.jobs().end(), [job](const auto& other) {
      return other.id != job && other.phase == Phase::kRunning && other.terms.returns;
    });
  };
  std::vector<JobId> overdue;
  for (const Request& request : requests_) {
    const FlowJob* job = Find(request.job);
    const scheduler::Job* known = ledger_.Find(request.job);
    if (job == nullptr || known == nullptr || request.kind != RequestKind::kLease) continue;
    if (job->moving != Moving::kNot) continue;  // its own time stands still
    // A profiled job that was promised this waits as long as it takes. So does one without a
    // profile while others are inside the iterations that they were let into beside it.
    const bool promised = (known->phase == Phase::kRunning || others_return(request.job)) &&
                          scheduler::InsideClaim(ledger_, request);
    if (!promised && now_ns_ - job->waits_since_ns >= options_.lease_wait_ns) {
      overdue.push_back(request.job);
    }
  }
  for (const JobId id : overdue) {
    const std::string text = "gave up after " +
                             std::to_string(options_.lease_wait_ns / 1'000'000'000) +
                             " s: " + WhyWaiting(id);
    LogRefusal(id, scheduler::RefusalReason::kExhausted, RequestOf(id)->units, text);
    AnswerDeny(id, protocol::DenyCode::kExhausted, text);
  }
}

/// Whoever waits for what a dead job's child keeps waits as long as for what nobody was promised.
void Flow::GiveUpHolders() {
  for (const auto& [id, since] : dead_since_ns_) {
    const uint64_t waited = now_ns_ - since;
    scheduler::Linger linger = scheduler::Linger::kNot;
    if (waited >= options_.notice_after_ns) linger = scheduler::Linger::kAWhile;
    if (waited >= options_.lease_wait_ns) linger = scheduler::Linger::kForGood;
    (void)Must(id, ledger_.SetLinger(id, linger));
  }
}

/// A dead job's memory mostly comes back within milliseconds, but a forked child may keep it for
/// hours. Who was given no limit begins with what is left, and may grow later.
void Flow::YieldToQuarantine() {
  Units quarantined = 0;
  for (const scheduler::Job& job : ledger_.jobs()) quarantined += job.quarantined;
  if (quarantined == 0) return;
  Ledger next = ledger_;
  bool some = false;
  for (const auto& [id, job] : jobs_) {
    if (!MayYield(id) || now_ns_ - job.waits_since_ns < options_.notice_after_ns) continue;
    const Units left = Lendable() - std::min(Lendable(), quarantined);
    some = (left > 0 && left < next.Find(id)->limit && next.SetLimit(id, left).ok()) || some;
  }
  if (some) ReplaceLedger(std::move(next));
}

/// So does whoever asked for a smaller budget: nobody begins before it is in force.
bool Flow::SomebodyWaitsToBegin(JobId but) const {
  if (BudgetFalls()) return true;
  for (const auto& [id, job] : jobs_) {
    if (id == but || job.waits_since_ns == 0) continue;
    const Request* request = RequestOf(id);
    if (request == nullptr || request->kind == RequestKind::kNewcomer ||
        request->kind == RequestKind::kGate0 || request->kind == RequestKind::kSwapIn) {
      return true;
    }
  }
  return false;
}

void Flow::SettleUnprofiled() {
  std::vector<std::pair<JobId, std::string>> given_up;
  for (auto& [id, job] : jobs_) {
    const scheduler::Job* known = ledger_.Find(id);
    const bool unknown = known != nullptr && known->phase == Phase::kUnprofiled && !known->settled;
    if (unknown && options_.spatial) {
      given_up.emplace_back(id, "policy spatial reserves its limit");
      continue;
    }
    if (!unknown || !SomebodyWaitsToBegin(id)) {
      job.waited_for_since_ns = 0;
      job.waiting_launches = 0;
      continue;
    }
    if (job.waited_for_since_ns == 0) job.waited_for_since_ns = now_ns_;
    SetQuiet(id, now_ns_ - job.last_work_ns >= options_.patience.quiet_ns);
    scheduler::Measured measured;
    measured.blocked = job.waits_since_ns != 0;
    measured.waited_ns = now_ns_ - job.waited_for_since_ns;
    measured.launches = job.waiting_launches;
    measured.silent_ns = now_ns_ - job.last_sign_ns;
    if (job.published.has_value()) {
      measured.published = {job.launches - job.published->launches_before,
                            job.published->profile.period};
    }
    const scheduler::GiveUp reason = scheduler::Judge(measured, options_.patience);
    if (reason == scheduler::GiveUp::kNot) continue;
    given_up.emplace_back(id, scheduler::Why(reason, options_.patience));
  }
  for (const auto& [id, why] : given_up) Settle(id, Get(id), why);
}

/// A job that computes nothing in the middle of its iteration (it was stopped, say) takes up no
/// lane, and nobody begins on what it holds (I6).
void Flow::NoticeStandstill() {
  for (auto& [id, job] : jobs_) {
    const scheduler::Job* known = ledger_.Find(id);
    if (known == nullptr || known->phase != Phase::kRunning || job.waits_since_ns != 0 ||
        job.moving != Moving::kNot || !SomebodyWaitsToBegin(id)) {
      continue;
    }
    const uint64_t since = std::max(job.last_work_ns, job.answered_ns);
    if (now_ns_ - since < options_.patience.quiet_ns) continue;
    job.stood_still = true;
    SetQuiet(id, true);
  }
}

void Flow::SetQuiet(JobId id, bool quiet) {
  const scheduler::Job* known = ledger_.Find(id);
  if (known == nullptr || !known->past_gate() || known->quiet == quiet) return;
  if (Must(id, ledger_.SetQuiet(id, quiet))) LogQuiet(*known);
}

void Flow::LogQuiet(const scheduler::Job& job) {
  Record record = RecordFor(job.quiet ? EventKind::kQuiet : EventKind::kBusy, job.id);
  record.collective = job.quiet && job.collective;
  Log(std::move(record));
}

void Flow::Settle(JobId id, FlowJob* job, const std::string& why) {
  const scheduler::Job& known = *ledger_.Find(id);
  const Units limit =
      job->spec.limit > 0
          ? known.limit
          : std::min(known.limit, std::max(known.held(), scheduler::WithTenth(known.peak)));
  Ledger next = ledger_;
  MakeRoom(&next, id, limit, [this](JobId other) { return MayYield(other); });
  if (!next.Settle(id, limit).ok()) {
    // What it may hold for good does not fit beside what another was promised. That one waits: the
    // memory is only lent out, and comes back with a profile or with the job's end.
    job->waited_for_since_ns = now_ns_;
    job->waiting_launches = 0;
    return;
  }
  Record record = RecordFor(EventKind::kSettle, id);
  record.limit = limit;
  record.request = limit;
  record.claim = next.Find(id)->terms.claim;
  record.text = why;
  sink_->Notice(id, 0,
                {"others do not wait for its iteration any more: " + record.text +
                 "; it may hold at most " + ledger_.Bytes(limit) + " while they need the rest"});
  ReplaceLedger(std::move(next));
  Log(std::move(record));
}

}  // namespace sluice::flow
