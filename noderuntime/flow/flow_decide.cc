// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// From requests to answers: everything here runs between two events, on an unchanging clock.
#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "noderuntime/flow/flow.h"
#include "scheduler/ledger/limits.h"

namespace sluice::flow {

using scheduler::Decision;
using scheduler::EventKind;
using scheduler::Phase;
using scheduler::Record;
using scheduler::RequestKind;

namespace {

/// Of a wait without a request.
constexpr uint64_t kNoTicket = ~uint64_t{0};

protocol::DenyCode ToWire(scheduler::DenyCode code) {
  switch (code) {
    case scheduler::DenyCode::kOverLimit:
      return protocol::DenyCode::kOverLimit;
    case scheduler::DenyCode::kExhausted:
      return protocol::DenyCode::kExhausted;
    case scheduler::DenyCode::kRefused:
      return protocol::DenyCode::kRefused;
  }
  return protocol::DenyCode::kRefused;
}

}  // namespace

/// Who the policy sees, and who not yet.
void Flow::HoldBack() {
  const auto move = [](std::vector<Request>* from, std::vector<Request>* to, const auto& which) {
    const auto rest = std::stable_partition(from->begin(), from->end(),
                                            [&](const Request& one) { return !which(one); });
    std::move(rest, from->end(), std::back_inserter(*to));
    from->erase(rest, from->end());
  };
  move(&held_back_, &requests_, [this](const Request& request) {
    return !WaitsForOwnFences(ledger_, request) && !BeginsLater(request);
  });
  move(&requests_, &held_back_, [this](const Request& request) { return BeginsLater(request); });
}

void Flow::Enqueue(JobId id, Request request) {
  request.ticket = next_ticket_++;
  if (const FlowJob* asks = Find(id)) request.priority = asks->spec.priority;
  (WaitsForOwnFences(ledger_, request) ? held_back_ : requests_).push_back(request);
  if (FlowJob* job = Get(id)) {
    job->waits_since_ns = now_ns_;
    job->noticed = false;
  }
  // Of a job without a profile, asking is no sign that it computes.
  const scheduler::Job* known = ledger_.Find(id);
  if (known != nullptr && known->phase == Phase::kRunning) SetQuiet(id, false);
}

void Flow::TryAdmit(JobId id) {
  FlowJob* job = Get(id);
  if (job == nullptr || job->admitted || !job->refusal.empty()) return;
  Ledger next = ledger_;
  const auto yields = [this](JobId other) { return MayYield(other); };
  const Units request = Reserved(job->spec);
  if (options_.spatial && job->spec.limit == 0) return;  // it was registered under another policy
  MakeRoom(&next, id, request, yields);
  const Units limit = job->spec.limit > 0 ? job->spec.limit : next.LargestLimit(id, request);
  if (limit == 0 || !next.Admit(id, job->spec.name, request, limit).ok()) return;
  if (!next.SetOutside(id, OutsideUnits(id, *job, 0)).ok()) return;
  ReplaceLedger(std::move(next));
  job->admitted = true;
  (void)Must(id, ledger_.SetStitches(id, job->spec.stitches));
  // Said before (NoteCollectives).
  if (job->collectives) (void)Must(id, ledger_.SetCollective(id));
  Record record = RecordFor(EventKind::kAdmit, id);
  record.name = job->spec.name;
  record.request = request;
  record.limit = limit;
  Log(std::move(record));
  if (outside_.charged(id) > 0) LogOutside(id, static_cast<uint32_t>(protocol::Family::kContext));

  Request begin;
  begin.job = id;
  begin.kind = RequestKind::kNewcomer;
  const uint64_t since = job->waits_since_ns;
  Enqueue(id, begin);
  job->waits_since_ns = since;
}

/// Whether all that limits and requests depend on is known: nobody is being measured, begins or
/// ends.
bool Flow::EverythingMeasured() const {
  return std::all_of(ledger_.jobs().begin(), ledger_.jobs().end(), [](const scheduler::Job& job) {
    return job.phase == Phase::kParked || job.phase == Phase::kRunning || job.settled ||
           job.id == scheduler::kBeyondBudget;
  });
}

/// What the ledger says to the least that the job could do with; ok: it can be admitted.
Status Flow::WhyNotAdmitted(const JobSpec& spec) const {
  if (options_.spatial && spec.limit == 0) return CheckGivenLimit(spec);
  Ledger trial = ledger_;
  const JobId id = spec.id == scheduler::kNoJob ? std::numeric_limits<JobId>::max() : spec.id;
  const Units request = Reserved(spec);
  MakeRoom(&trial, id, request, [this](JobId other) { return MayYield(other); });
  const Units least = spec.limit > 0 ? spec.limit : std::max<Units>(1, request);
  if (Status s = trial.Admit(id, spec.name, request, least); !s.ok()) return s;
  return trial.SetOutside(id, OutsideUnits(id, spec.limit, 0));
}

void Flow::AdmitWaiting() {
  std::vector<JobId> waiting;
  for (const auto& [id, job] : jobs_) {
    if (!job.admitted && job.refusal.empty()) waiting.push_back(id);
  }
  for (const JobId id : waiting) {
    TryAdmit(id);
    const FlowJob& job = *Get(id);
    if (job.admitted || !EverythingMeasured()) continue;
    if (Status why = WhyNotAdmitted(job.spec); !why.ok()) {
      LogRefusal(id, scheduler::RefusalReason::kRefused, job.spec.request, why.message());
      Refuse(id, why.message());
    }
  }
}

void Flow::Refuse(JobId id, const std::string& reason) {
  FlowJob* job = Get(id);
  job->refusal = reason;
  DropRequest(id);
  if (job->admitted) {
    job->admitted = false;
    Leave(id);
  }
  if (job->answer.has_value()) AnswerDeny(id, protocol::DenyCode::kRefused, reason);
}

void Flow::Decide() {
  if (frozen_) return;
  ++looks_;
  FollowBudget();
  FollowSoftBudget();
  HoldBack();
  UpdateTerms();
  // Each decision answers a request or frees units, as many as can be at once, so the loop is
  // bounded by the jobs that there are.
  scheduler::AskAgain again{kLeastPauseNs};
  while (const auto decision =
             scheduler::Next(ledger_, requests_, options_.policy, OutlookNow(), &again, &spare_)) {
    again = {kLeastPauseNs};
    ++decisions_;
    ++changes_;
    if (!ApplyDecision(*decision)) break;
    UpdateTerms();
  }
  RememberToAsk(again.in);
  LogWaits();
}

bool Flow::ApplyDecision(const Decision& decision) {
  const JobId id = decision.job;
  const scheduler::Job* asker = ledger_.Find(id);
  const Units peak = asker == nullptr ? 0 : asker->peak;
  const Extents away = asker == nullptr ? Extents() : asker->away;
  std::vector<Record> records = scheduler::RecordsOf(decision, requests_, ledger_);
  if (Status s = scheduler::Apply(decision, requests_, &ledger_); !s.ok()) {
    // The decision was made on this very ledger.
    (void)Must(id, s);
    return false;
  }
  FlowJob* job = Get(id);
  for (Record& record : records) {
    record.t_ns = now_ns_;
    if (job != nullptr && job->answer.has_value()) record.iteration = job->answer->iteration;
    Log(std::move(record));
  }
  if (decision.kind == Decision::Kind::kReclaim || job == nullptr) return true;
  if (decision.kind == Decision::Kind::kDeny) {
    const RequestKind kind = requests_[decision.request].kind;
    if (kind == RequestKind::kNewcomer) {
      Refuse(id, decision.reason);
    } else {
      AnswerDeny(id, ToWire(decision.code), decision.reason);
    }
    return true;
  }
  if (decision.kind == Decision::Kind::kEvict) {
    BeginEviction(id);
    return true;
  }
  const Request request = requests_[decision.request];
  scheduler::CountOvertaken(decision, &requests_);
  if (scheduler::ComesBack(request)) {
    BringBack(id, away);
    return true;
  }
  const scheduler::Job& known = *ledger_.Find(id);
  // Asking is no sign of life, or whoever asks for ever would be waited for as long. Growth is one.
  if (known.peak > peak) job->last_sign_ns = now_ns_;
  job->use = std::max(job->use, known.leased);
  job->held.Hold(known.held());
  job->largest_run = std::max(job->largest_run, request.contiguous);
  if (request.kind == RequestKind::kNewcomer) PublishLimit(id);
  if (request.kind == RequestKind::kGate0) {
    job->use = known.leased;
    job->held.Begin(job->published.has_value() ? job->published->plan.gates.size() : 1,
                    known.held(), HoldsWhole(*job));
    job->gated_iteration = true;
    job->passed_gate = 0;
    if (job->answer.has_value()) job->iteration = job->answer->iteration;
    // The profile went while the job stood at its gate.
    if (!job->published.has_value())
      LoseProfile(id, {scheduler::DeviationReason::kCycle, "its cycle was lost while it waited"});
  }
  AnswerGrant(id, decision.extents);
  // Behind the wait for this very gate.
  if (request.kind == RequestKind::kGate0) job->times.Open(now_ns_);
  return true;
}

void Flow::AnswerGrant(JobId id, const Extents& extents) {
  DropRequest(id);
  FlowJob* job = Get(id);
  job->stays = false;
  job->returns = 0;
  job->answered_ns = now_ns_;
  if (!extents.empty()) sink_->HolderChanged(extents, id);
  if (!job->answer.has_value()) return;  // a newcomer that has not asked for memory yet
  GrantAnswer answer;
  answer.seq = job->answer->seq;
  answer.gate = job->answer->gate;
  answer.profile = job->answer->profile;
  answer.epoch = ++job->epoch;
  answer.extents = extents;
  if (const scheduler::Job* known = ledger_.Find(id)) {
    answer.claim = known->terms.claim;
    answer.high_end = known->terms.end == scheduler::End::kHigh;
  }
  job->answer.reset();
  if (answer.gate != protocol::kNoGate) PassGate(id, answer.gate);
  sink_->Grant(id, answer);
}

void Flow::AnswerDeny(JobId id, protocol::DenyCode code, const std::string& text) {
  DropRequest(id);
  FlowJob* job = Get(id);
  if (job == nullptr || !job->answer.has_value()) return;
  const uint32_t seq = job->answer->seq;
  job->answer.reset();
  job->stays = false;
  job->returns = 0;
  sink_->Deny(id, seq, code, text);
}

void Flow::UpdateTerms() {
  for (auto& [id, job] : jobs_) {
    const scheduler::Job* known = ledger_.Find(id);
    bool pressure = scheduler::PressureOn(ledger_, id, options_.lend_eagerly);
    // Promised when the gate opened, and counted on in I3: it holds until the next trough.
    if (known != nullptr && known->phase == Phase::kRunning && known->terms.returns)
      pressure = true;
    for (const auto& [other, waiting] : jobs_) {
      if (other != id && waiting.waits_since_ns != 0) pressure = true;
    }
    job.pressure = pressure;
    uint32_t flags = 0;
    if (pressure) flags |= protocol::kPressure;
    if (job.profiler.wants_times()) flags |= protocol::kWantTimes;
    if (!options_.credit) flags |= protocol::kCreditOff;
    if (flags != job.flags) {
      job.flags = flags;
      // Release: a client that has seen its gate open sees the flag that the opening counted on.
      job.pages.daemon->flags.store(flags, std::memory_order_release);
    }
    Request* request = RequestOf(id);
    if (request == nullptr) continue;
    request->insurance = InsuranceOf(*request, job);
    if (request->kind == RequestKind::kBringBack) {
      request->returns = pressure && options_.credit && job.published.has_value();
    }
    if (request->kind == RequestKind::kGate0 && known->phase == Phase::kParked) {
      const bool stays = request->insurance == scheduler::Insurance::kNone;
      (void)Must(id, ledger_.SetStays(id, stays));
    }
    if (request->kind == RequestKind::kGate0) {
      // What a gate opens with is what holds when it opens, not when the job came to it.
      request->returns = pressure && options_.credit && job.published.has_value();
      if (job.published.has_value()) {
        const Request now = GateZero(id, job);
        request->claim = now.claim;
        request->units = now.units;
        request->contiguous = now.contiguous;
        request->prefers = now.prefers;
      } else {
        // Its profile went, and its limit may have changed since (Withdraw).
        const Units has = std::min(known->limit, known->held() + known->outside);
        request->claim = known->limit;
        request->units = std::min(request->units, known->limit - has);
      }
    }
  }
}

void Flow::LogWaits() {
  for (const Request& request : requests_) LogWait(request.job, Get(request.job), &request);
  // Who waits for its own GPU alone is among the others in a moment.
  for (const Request& request : held_back_) {
    if (BeginsLater(request)) LogWait(request.job, Get(request.job), &request);
  }
  for (auto& [id, job] : jobs_) {
    if (!job.admitted && job.refusal.empty()) LogWait(id, &job, nullptr);
  }
}

/// Once for each request and each reason that it waits for: whoever looks at it later sees the one
/// of then, and counts have to know it. Whoever is not admitted yet has no request.
void Flow::LogWait(JobId id, FlowJob* job, const Request* request) {
  const uint64_t ticket = request == nullptr ? kNoTicket : request->ticket;
  if (job == nullptr) return;
  if (job->logged_ticket != ticket) job->logged_reasons = 0;
  job->logged_ticket = ticket;
  const scheduler::WaitReason reason = WaitsBecause(request);
  const uint32_t bit = 1u << static_cast<uint32_t>(reason);
  if ((job->logged_reasons & bit) != 0) return;
  job->logged_reasons |= bit;
  Record record = RecordFor(EventKind::kWait, id);
  record.reason = ReasonName(reason);
  if (request != nullptr) {
    record.gate = request->gate;
    record.units = request->units;
    record.contiguous = request->contiguous;
  }
  // A sentence costs more than all else here; whoever asks later gets one then.
  if (sink_->wants_log()) record.text = WhyWaiting(id);
  Log(std::move(record));
}

void Flow::LogRefusal(JobId id, scheduler::RefusalReason reason, Units units,
                      const std::string& text) {
  Record record = RecordFor(EventKind::kDeny, id);
  record.units = units;
  record.reason = ReasonName(reason);
  record.text = text;
  Log(std::move(record));
}

}  // namespace sluice::flow
