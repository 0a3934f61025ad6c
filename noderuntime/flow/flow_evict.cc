// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// To host memory and back. I5 for a job that left its claim: where nobody could go on otherwise,
// its client is asked to stand still, what it has outside its base is copied to host memory and
// lent to others, and comes back to the same units before it has its answer. All that a job has at
// its trough goes the same way by turns, where there is to be room for more than the bases leave.
// Who holds the bytes: the job, until the copy out has ended, and again from before the copy back
// begins. That the GPU is done with them: the client has waited for all its work and issues none.
// Who waits for whom: the job for its neighbours, which never wait for it: they go on when the copy
// out has ended.
#include "noderuntime/flow/flow.h"

namespace sluice::flow {

using scheduler::DeviationReason;
using scheduler::EventKind;
using scheduler::Insurance;
using scheduler::Phase;
using scheduler::Record;
using scheduler::RequestKind;
using scheduler::UnitState;

namespace {

/// A client looks for quiet within seconds (intercept/session/client_quiet.cc). Others wait for its
/// word: one that hangs, or does not mean to give it, costs them no more than this.
constexpr uint64_t kQuietPatienceNs = 15'000'000'000;
/// Where a job has to come back to, somebody may keep memory who does nothing.
constexpr uint64_t kAwayPatienceNs = 300'000'000'000;
/// A job whose wish cannot be met where its own blocks lie would come and go for ever.
constexpr uint32_t kMostReturns = 8;
constexpr size_t kRecordsBehindQuiet = 4096;

const char* ReasonText(protocol::QuietReason reason) {
  switch (reason) {
    case protocol::QuietReason::kCapturing:
      return "it captures a graph";
    case protocol::QuietReason::kDebugging:
      return "its library overwrites what is freed";
    case protocol::QuietReason::kBusy:
    case protocol::QuietReason::kQuiet:
      break;
  }
  return "its work does not come to an end";
}

}  // namespace

Insurance Flow::InsuranceOf(const Request& request, const FlowJob& job) const {
  if (scheduler::ComesBack(request)) return Insurance::kNone;
  if (job.moving != Moving::kNot) return Insurance::kLeaving;
  const scheduler::Job* known = ledger_.Find(request.job);
  if (known == nullptr || job.stays) return Insurance::kNone;
  Units units = 0;
  if (request.kind == RequestKind::kGate0 && known->phase == Phase::kParked) {
    // By turns, or out of the way of one that has to come back.
    const bool wanted = options_.policy.residents > 0 || SomebodyIsAway();
    if (!wanted || known->leased == 0 || now_ns_ < job.stays_until_ns) return Insurance::kNone;
    units = known->leased;
  } else {
    const bool past = scheduler::AsksPastGate(request);
    if (!past || !known->past_gate()) return Insurance::kNone;
    units = TotalUnits(known->loose);
  }
  return sink_->CanMove(request.job, units) ? Insurance::kEvictable : Insurance::kNone;
}

bool Flow::SomebodyIsAway() const {
  return std::any_of(requests_.begin(), requests_.end(), scheduler::ComesBack);
}

/// At its trough all of it, in its iteration what it has outside its base.
Extents Flow::WouldMove(JobId id) const {
  const scheduler::Job& job = *ledger_.Find(id);
  Extents leased = ledger_.map().Held(id, UnitState::kLeased);
  return job.phase == Phase::kParked ? leased : Intersect(leased, job.loose);
}

void Flow::BeginEviction(JobId id) {
  // What it wants stands in the log before what is done about it.
  LogWaits();
  FlowJob* job = Get(id);
  job->moving = Moving::kAsked;
  job->moving_since_ns = now_ns_;
  if (options_.faults.skip_quiet) return BeginMove(id, job);
  sink_->Quiesce(id, job->answer->seq);
}

Status Flow::OnQuiet(JobId id, const protocol::Quiet& quiet, uint64_t now_ns) {
  now_ns_ = now_ns;
  FlowJob* job = Get(id);
  if (job != nullptr && job->moving != Moving::kAsked && job->late_quiets > 0) {
    --job->late_quiets;
    return {};
  }
  if (job == nullptr || job->moving != Moving::kAsked || quiet.header.seq != job->answer->seq) {
    return Status(StatusCode::kInvalidArgument, "Quiet from a job that was not asked to be");
  }
  const auto reason = static_cast<protocol::QuietReason>(quiet.reason);
  if (reason != protocol::QuietReason::kQuiet) {
    Stay(id, job, ReasonText(reason));
    Decide();
    return {};
  }
  // All that it wrote before it stood still, and that is one ring at most.
  ConsumeRing(id, job, protocol::kRingRecords);
  // Others of its threads may free meanwhile, which computes nothing.
  const uint64_t work = job->launches + job->copies;
  if (job->ring.more()) ConsumeRing(id, job, kRecordsBehindQuiet);
  if (job->ring.more() || job->launches + job->copies != work) {
    return Status(StatusCode::kInvalidArgument, "Quiet, but more than " +
                                                    std::to_string(protocol::kRingRecords) +
                                                    " records, a whole ring");
  }
  CollectFences(id, job);
  // It says that its GPU is done, and its marks say otherwise.
  if (!job->releases.empty()) {
    return Status(StatusCode::kInvalidArgument, "Quiet, but marks of its releases are not reached");
  }
  BeginMove(id, job);
  Decide();
  return {};
}

void Flow::BeginMove(JobId id, FlowJob* job) {
  const Extents leaves = WouldMove(id);
  job->moving = Moving::kLeaving;
  const Status begun = leaves.empty()
                           ? Status(StatusCode::kFailedPrecondition, "it has nothing to move")
                           : sink_->MoveOut(id, leaves);
  if (!begun.ok()) return Stay(id, job, begun.message());
  LogCopy(EventKind::kCopyOut, id, sink_->Copied(id), begun);
}

/// Whoever has the bytes says which: the log is to show what was done with them.
void Flow::LogCopy(EventKind event, JobId id, const Extents& extents, const Status& how) {
  Record record = RecordFor(event, id);
  record.extents = extents;
  record.text = how.message();
  Log(std::move(record));
}

/// Bytes that are copied to other units than they are from, or lent on before they are copied, are
/// lost or somebody else's: one of the two jobs could not go on, and it is not the neighbour.
Status Flow::SameAsCopied(JobId id, const Extents& extents) {
  const Extents copied = scheduler::Merge(sink_->Copied(id));
  if (copied == scheduler::Merge(extents) || options_.faults.skip_comparison) return {};
  return Status(StatusCode::kInternal, ledger_.Bytes(TotalUnits(copied)) + " of it were copied, " +
                                           ledger_.Bytes(TotalUnits(extents)) +
                                           " are its own to be moved");
}

/// Its session ends, and keeps it from all else until then.
void Flow::GiveUpCopy(JobId id, const Status& why) {
  sink_->DropMoved(id);
  sink_->EndSession(id, "its memory cannot be moved: " + why.message());
}

/// What it waits for is decided as if there were no host memory.
void Flow::Stay(JobId id, FlowJob* job, const std::string& why) {
  job->moving = Moving::kNot;
  job->stays = true;
  if (RequestOf(id)->kind == RequestKind::kGate0) {
    job->stays_until_ns = now_ns_ + options_.policy.slice_ns;
    return;  // nobody waits for it, and it asks as often as it iterates
  }
  sink_->Notice(id, job->answer->seq, {"its memory could not be moved to host memory: " + why});
}

/// Every wait ends.
void Flow::GiveUpMoves() {
  for (auto& [id, job] : jobs_) {
    const uint64_t since = now_ns_ - job.moving_since_ns;
    if (job.moving == Moving::kAsked && since >= kQuietPatienceNs) {
      ++job.late_quiets;
      Stay(id, &job, "it does not say whether its work has come to an end");
    }
    if (job.moving != Moving::kAway) continue;
    Request* request = RequestOf(id);
    EndSlice(request, since);
    // Who went by turns did nothing to lose what it has for.
    if (since < kAwayPatienceNs || request->kind == RequestKind::kSwapIn) continue;
    for (const scheduler::Job& other : ledger_.jobs()) {
      const bool idle = other.phase == Phase::kParked && RequestOf(other.id) == nullptr;
      if (!idle || Intersect(ledger_.map().Held(other.id), ledger_.Find(id)->away).empty())
        continue;
      job.moving_since_ns = now_ns_;  // told once
      sink_->EndSession(id, "its memory cannot come back: " + other.Title() +
                                " keeps other memory than before in its place, and does nothing");
    }
  }
}

/// Nobody goes on instead of who waits where nobody begins an iteration.
void Flow::EndSlice(Request* request, uint64_t away_ns) const {
  if (request->kind != RequestKind::kSwapIn) return;
  const bool ends = all_back_ || BudgetFalls() || away_ns >= options_.policy.slice_ns;
  request->due = request->due || ends;
}

void Flow::BringAllBack(uint64_t now_ns) {
  now_ns_ = now_ns;
  all_back_ = true;
  GiveUpMoves();
  if (!frozen_) Decide();
}

void Flow::OnMoved(JobId id, const Status& how, uint64_t now_ns) {
  now_ns_ = now_ns;
  FlowJob* job = Get(id);
  if (job == nullptr) return;
  if (job->moving == Moving::kLeaving) {
    if (how.ok()) {
      BeAway(id, job);
    } else {
      LogCopy(EventKind::kCopyOut, id, {}, how);
      Stay(id, job, how.message());
    }
  } else if (job->moving == Moving::kReturning) {
    LogCopy(EventKind::kCopyBack, id, sink_->Copied(id), how);
    if (!how.ok())
      return sink_->EndSession(id, "its memory cannot be moved back: " + how.message());
    job->moving = Moving::kNot;
    // It waits for its turn as before.
    if (RequestOf(id)->kind == RequestKind::kGate0) return Decide();
    job->waits_since_ns = now_ns;
    ++job->evictions;
    // Others had their turn each time: what it wants will not be there.
    if (++job->returns >= kMostReturns) job->stays = true;
  }
  Decide();
}

void Flow::BeAway(JobId id, FlowJob* job) {
  const Extents leaves = WouldMove(id);
  const bool by_turns = ledger_.Find(id)->phase == Phase::kParked;
  Ledger next = ledger_;
  Status evicted = SameAsCopied(id, leaves);
  if (evicted.ok()) evicted = next.Evict(id);
  if (!evicted.ok()) return GiveUpCopy(id, evicted);
  // As with what is fenced: published while the ledger still counts them as held.
  sink_->HolderChanged(leaves, scheduler::kNoJob);
  Record record = RecordFor(EventKind::kEvict, id);
  record.extents = leaves;
  record.text = "moved to host memory, " + ledger_.Bytes(TotalUnits(leaves)) +
                (by_turns ? " until its turn" : ", so that others go on: " + WhyWaiting(id));
  record.reason = ReasonName(by_turns ? scheduler::WaitReason::kTurn : WaitsBecause(id));
  const Line line = {record.text, About::kRecord};
  Log(std::move(record));
  if (!by_turns) sink_->Notice(id, job->answer->seq, line);
  ledger_ = std::move(next);
  job->moving = Moving::kAway;
  job->moving_since_ns = now_ns_;
  Request* request = RequestOf(id);
  request->kind = by_turns ? RequestKind::kSwapIn : RequestKind::kBringBack;
  request->overtaken = 0;
  request->due = false;
}

/// The ledger has given it back what it had, which is `back`.
void Flow::BringBack(JobId id, const Extents& back) {
  FlowJob* job = Get(id);
  const scheduler::Job& known = *ledger_.Find(id);
  Request* request = RequestOf(id);
  if (known.phase == Phase::kParked) {
    request->kind = RequestKind::kGate0;
    request->overtaken = 0;
  } else {
    request->kind = request->gate == 0 ? RequestKind::kLease : RequestKind::kGate;
  }
  if (known.phase == Phase::kRunning && !job->published.has_value())
    LoseProfile(id, {DeviationReason::kCycle, "its cycle was lost while it was in host memory"});
  sink_->HolderChanged(ledger_.map().Held(id, UnitState::kLeased), id);
  job->moving = Moving::kReturning;
  // Before a byte is written: the units of others are no place for it.
  if (const Status same = SameAsCopied(id, back); !same.ok()) return GiveUpCopy(id, same);
  if (options_.faults.skip_copy_back) {
    sink_->DropMoved(id);
    job->moving = Moving::kNot;
    return;
  }
  if (const Status begun = sink_->MoveBack(id); !begun.ok()) {
    sink_->EndSession(id, "its memory cannot be moved back: " + begun.message());
  }
}

}  // namespace sluice::flow
