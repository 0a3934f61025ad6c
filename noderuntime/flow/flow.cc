// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/flow/flow.h"

#include <algorithm>
#include <utility>

#include "scheduler/ledger/limits.h"

namespace sluice::flow {

using scheduler::EventKind;
using scheduler::Phase;
using scheduler::Record;
using scheduler::RequestKind;

namespace {

constexpr size_t kRecordsPerFrame = 4096;
constexpr size_t kRecordsPerTick = 32768;
/// Frames about a profile that is gone: a few are in flight when it goes.
constexpr uint64_t kMaxStrayFrames = 64;

Status Breach(const std::string& text) { return Status(StatusCode::kInvalidArgument, text); }

}  // namespace

static_assert(scheduler::Patience{}.launches == uint64_t{3} * protocol::kMaxPeriodLaunches);

scheduler::ProfilerOptions Flow::ClientHash() {
  scheduler::ProfilerOptions options;
  options.max_period = protocol::kMaxPeriodLaunches;
  options.hash_seed = protocol::kHashSeed;
  options.fold = [](uint64_t hash, uint64_t id) { return protocol::FoldLaunch(hash, id); };
  return options;
}

Flow::Flow(const FlowOptions& options, FlowSink* sink)
    : options_(options),
      sink_(sink),
      ledger_(options.pool_units, options.unit_bytes),
      outside_(options.outside_bytes) {
  Adopt(options_.policy.policy, options_.policy.lanes);
  Record record;
  record.event = EventKind::kPool;
  record.units = options_.pool_units;
  record.unit_bytes = options_.unit_bytes;
  record.bytes = options_.outside_bytes;
  record.policy = policy_name();
  sink_->Log(record);
}

/// Whether anybody may have this limit at all.
Status Flow::CheckGivenLimit(const JobSpec& spec) const {
  if (options_.spatial && spec.limit == 0) {
    return Status(StatusCode::kInvalidArgument,
                  "limit: policy spatial reserves it; allowed: " + ledger_.Bytes(1) + " to " +
                      ledger_.Bytes(options_.pool_units) + " (the pool)");
  }
  if (spec.limit > Lendable()) {
    return Status(StatusCode::kResourceExhausted,
                  "limit " + ledger_.Bytes(spec.limit) + ": the budget is " +
                      ledger_.Bytes(Lendable()) + "; allowed: up to that");
  }
  return {};
}

Status Flow::CheckRegistration(const JobSpec& spec) const {
  if (Status s = CheckGivenLimit(spec); !s.ok()) return s;
  uint64_t requests = Reserved(spec);
  for (const auto& [id, job] : jobs_) requests += Reserved(job.spec);
  if (requests > Lendable()) {
    return Status(StatusCode::kResourceExhausted,
                  (options_.spatial ? "limit " : "request ") + ledger_.Bytes(Reserved(spec)) +
                      " does not fit beside what is reserved for the others in " +
                      (Lendable() < options_.pool_units ? "the budget of " : "the pool of ") +
                      ledger_.Bytes(Lendable()) + ": " + ledger_.Holders());
  }
  return EverythingMeasured() ? WhyNotAdmitted(spec) : Status();
}

FlowJob* Flow::Get(JobId job) {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? nullptr : &found->second;
}

const FlowJob* Flow::Find(JobId job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? nullptr : &found->second;
}

scheduler::Request* Flow::RequestOf(JobId job) {
  return const_cast<Request*>(std::as_const(*this).RequestOf(job));
}

const scheduler::Request* Flow::RequestOf(JobId job) const {
  for (const auto* list : {&requests_, &held_back_}) {
    for (const Request& request : *list) {
      if (request.job == job) return &request;
    }
  }
  return nullptr;
}

void Flow::DropRequest(JobId job) {
  const auto of_job = [job](const Request& request) { return request.job == job; };
  std::erase_if(requests_, of_job);
  std::erase_if(held_back_, of_job);
  if (FlowJob* known = Get(job)) {
    if (known->waits_since_ns != 0) known->times.Waited(now_ns_ - known->waits_since_ns);
    known->waits_since_ns = 0;
    known->noticed = false;
  }
}

Record Flow::RecordFor(EventKind event, JobId job) const {
  Record record;
  record.t_ns = now_ns_;
  record.event = event;
  record.job = job;
  return record;
}

void Flow::Log(Record record) {
  ++changes_;
  sink_->Log(record);
}

bool Flow::Must(JobId job, const Status& done) {
  if (done.ok()) return true;
  const std::string text = "internal error: " + done.message();
  LogRefusal(job, scheduler::RefusalReason::kInternal, 0, text);
  sink_->EndSession(job, text);
  return false;
}

void Flow::Start(const JobSpec& spec, const JobPages& pages, uint64_t now_ns) {
  now_ns_ = now_ns;
  GiveUpSoftBudget("job " + std::to_string(spec.id) + " begins");
  FlowJob& job = jobs_.try_emplace(spec.id, spec, pages, ClientHash()).first->second;
  job.waits_since_ns = now_ns;
  job.last_sign_ns = job.last_work_ns = now_ns;
  // What an earlier program of this process left went when it executed this one.
  const auto context = static_cast<uint32_t>(protocol::Family::kContext);
  if (const uint64_t left = outside_.charged(spec.id, context); left > 0) {
    (void)Must(spec.id, outside_.Uncharge(spec.id, context, left));
  }
  // Its context is there already: what is asked is whether it may stay.
  if (const Status charged = ChargeOutside(spec.id, job, context, options_.context_bytes);
      !charged.ok()) {
    job.refusal = charged.message();
    job.waits_since_ns = 0;
    LogRefusal(spec.id, scheduler::RefusalReason::kOutside, 0, job.refusal);
    return;
  }
  TryAdmit(spec.id);
  Decide();
}

Status Flow::OnLease(JobId id, const protocol::Lease& lease, uint64_t now_ns) {
  now_ns_ = now_ns;
  FlowJob* job = Get(id);
  if (job == nullptr) return Breach("Lease from a job that has not begun");
  if (job->moving != Moving::kNot) return Breach("Lease from a job whose memory is moved");
  ++job->leases;
  job->answer = PendingAnswer{lease.header.seq, protocol::kNoGate, 0, 0};
  if (!job->refusal.empty()) {
    AnswerDeny(id, protocol::DenyCode::kRefused, job->refusal);
    return {};
  }
  NotePlace(id, job);
  const scheduler::Job* known = ledger_.Find(id);
  if (known == nullptr || known->phase == Phase::kWaiting) {
    // It waits to begin; what it wants is granted with that.
    if (Request* request = RequestOf(id)) {
      request->units = lease.units;
      WantRun(request, lease.contiguous, job->spec);
    }
    Decide();
    return {};
  }
  const uint64_t wanted = uint64_t{known->leased} + lease.units;
  const bool outgrows = wanted > known->terms.claim;
  const bool if_there = (lease.header.flags & protocol::kIfThere) != 0;
  // In pieces it may get by with less, and others may need the rest.
  if (if_there && outgrows && jobs_.size() > 1) {
    AnswerDeny(id, protocol::DenyCode::kNoRun, "");
    return {};
  }
  // Another limit is another ledger, and `known` is of the one before.
  if (wanted > known->limit) GrowLimit(id, lease.units);
  if (outgrows) Outgrow(id);
  Request request;
  request.job = id;
  request.kind = RequestKind::kLease;
  request.units = lease.units;
  request.contiguous = lease.contiguous;
  if (if_there) return LeaseIfThere(id, request);
  Enqueue(id, request);
  Decide();
  return {};
}

Status Flow::OnGate(JobId id, const protocol::Gate& gate, uint64_t now_ns) {
  now_ns_ = now_ns;
  FlowJob* job = Get(id);
  if (job == nullptr) return Breach("Gate from a job that has not begun");
  if (job->moving != Moving::kNot) return Breach("Gate from a job whose memory is moved");
  ReadRing(id, job, kRecordsPerFrame);
  job->answer = PendingAnswer{gate.header.seq, gate.gate, gate.profile, gate.iteration};
  const scheduler::Job* known = ledger_.Find(id);
  // It was never given a profile, and answering would lose its request to begin.
  if (known == nullptr || known->phase == Phase::kWaiting) {
    job->answer.reset();
    return Breach("Gate from a job that has not begun");
  }
  const bool current = job->published.has_value() && job->published->id == gate.profile;
  if (!current) {
    // The profile went while the frame was on its way: go on, as a job without one.
    if (++job->stray_frames > kMaxStrayFrames) return Breach("Gates of a profile that is gone");
    AnswerGrant(id, {});
    return {};
  }
  const scheduler::CyclePlan& plan = job->published->plan;
  if (gate.gate >= plan.gates.size()) {
    return Breach("Gate " + std::to_string(gate.gate) + " of a profile with " +
                  std::to_string(plan.gates.size()) + " gates");
  }
  if (gate.gate == 0) {
    CollectFences(id, job);
    // A drained client has seen its marks in the same memory, so its fences are reached here too;
    // one that is not does not count as drained, whatever the frame says.
    const bool drained = gate.drained != 0 && job->releases.empty();
    if (known->phase != Phase::kParked && !ArriveAtTrough(id, job, gate, drained)) return {};
    // By what policies there were meanwhile.
    Tell(job, HoldsWhole(*job));
    Enqueue(id, GateZero(id, *job));
    Decide();
    return {};
  }
  const scheduler::GatePlan& place = plan.gates[gate.gate];
  const Units need = std::min(place.need_units, known->limit - known->outside);
  if (known->phase != Phase::kRunning || need <= known->leased) {
    AnswerGrant(id, {});
    return {};
  }
  Request request;
  request.job = id;
  request.kind = RequestKind::kGate;
  request.gate = gate.gate;
  request.units = need - known->leased;
  WantRun(&request, std::min(place.contiguous, request.units), job->spec);
  request.waives = WaivesAt(id, *job, gate.gate);
  Enqueue(id, request);
  Decide();
  return {};
}

Status Flow::OnRelease(JobId id, session::ReleaseFrame frame, uint64_t now_ns) {
  now_ns_ = now_ns;
  FlowJob* job = Get(id);
  if (job == nullptr || !job->admitted) return Breach("Release from a job that holds nothing");
  // Where it was only asked to stand still, frames may be on their way.
  const bool moved = job->moving != Moving::kNot && job->moving != Moving::kAsked;
  if (moved && !options_.faults.release_moved)
    return Breach("Release from a job whose memory is moved");
  NotePlace(id, job);
  PendingRelease release;
  release.id = job->next_release++;
  release.fence = std::move(frame.fence);
  for (const protocol::Extent& extent : frame.extents) {
    release.extents.push_back({extent.offset, extent.length});
  }
  if (Status s = ledger_.Release(id, release.extents, release.id); !s.ok()) {
    return Breach(s.message());
  }
  Record record = RecordFor(EventKind::kRelease, id);
  record.extents = release.extents;
  record.release = release.id;
  Log(std::move(record));
  if (options_.faults.ignore_fences) release.fence.clear();
  job->releases.push_back(std::move(release));
  ++fences_pending_;
  if (PollFences(id, job)) Decide();
  return {};
}

Flow::Deviation Flow::HowItLeft(uint32_t mismatch) {
  using scheduler::DeviationReason;
  switch (static_cast<protocol::MismatchReason>(mismatch)) {
    case protocol::MismatchReason::kOrder:
      return {DeviationReason::kThreads, "its threads launch in another order"};
    case protocol::MismatchReason::kOverflow:
      return {DeviationReason::kStreams, "it launches on more streams than can be followed"};
    case protocol::MismatchReason::kSequence:
      break;
  }
  return {DeviationReason::kLaunches, "its launches are not those of its cycle"};
}

Status Flow::OnMismatch(JobId id, const protocol::Mismatch& mismatch, uint64_t now_ns) {
  now_ns_ = now_ns;
  FlowJob* job = Get(id);
  if (job == nullptr) return Breach("Mismatch from a job that has not begun");
  if (!job->published.has_value() || job->published->id != mismatch.profile) {
    if (++job->stray_frames > kMaxStrayFrames)
      return Breach("Mismatches of a profile that is gone");
    return {};
  }
  ReadRing(id, job, kRecordsPerTick);
  job->profiler.Restart();
  Withdraw(id, job, HowItLeft(mismatch.reason));
  Decide();
  return {};
}

bool Flow::Die(JobId id, uint64_t now_ns, bool parted) {
  now_ns_ = now_ns;
  FlowJob* job = Get(id);
  if (job == nullptr) return false;
  GiveUpSoftBudget("job " + std::to_string(id) + " has ended");
  DropRequest(id);
  if (job->moving != Moving::kNot) sink_->DropMoved(id);
  CollectFences(id, job);
  fences_pending_ -= job->releases.size();
  const bool admitted = job->admitted;
  const auto context = static_cast<uint32_t>(protocol::Family::kContext);
  const uint64_t contexts = outside_.charged(id, context);
  const bool has_outside = outside_.charged(id) > contexts;
  const bool rests = parted && has_outside;
  jobs_.erase(id);
  courses_.erase(id);
  const scheduler::Job* known = ledger_.Find(id);
  // The GPU is done with spare units, so only leased and unfenced ones need their last holder gone.
  // What it has outside the pool is the driver's to take back, and goes with the process, or with
  // the handles of one that has parted.
  const bool stays = admitted && known != nullptr &&
                     (known->leased > 0 || known->unfenced > 0 || (has_outside && !rests));
  // Nobody waits for a context alone. It is paid for until its process is gone, unless that said
  // goodbye: then it has destroyed it.
  const bool owes = has_outside || (contexts > 0 && !parted);
  if (!owes && !stays) outside_.Remove(id);
  if (stays) {
    if (Must(id, ledger_.Die(id))) Log(RecordFor(EventKind::kDeath, id));
    dead_since_ns_[id] = now_ns;
    if (options_.faults.skip_quarantine) HolderGone(id, now_ns);
  } else if (admitted && known != nullptr) {
    Leave(id);
  }
  if (rests && Rests(id) && contexts > 0) {
    (void)Must(id, outside_.Uncharge(id, context, contexts));
  }
  Decide();
  return ledger_.Find(id) != nullptr || outside_.charged(id) > 0;
}

void Flow::Leave(JobId id) {
  Record record = RecordFor(EventKind::kLeave, id);
  record.extents = ledger_.map().Held(id, scheduler::UnitState::kSpare);
  if (Must(id, ledger_.Leave(id))) Log(std::move(record));
}

void Flow::HolderGone(JobId id, uint64_t now_ns) {
  now_ns_ = now_ns;
  const scheduler::Job* known = ledger_.Find(id);
  if (known == nullptr) outside_.Remove(id);  // it was never admitted
  if (known == nullptr || known->phase != Phase::kDying) return;
  const Extents held = ledger_.map().Held(id);
  if (!Must(id, ledger_.LastHolderGone(id))) return;
  if (!held.empty()) sink_->HolderChanged(held, scheduler::kNoJob);
  Log(RecordFor(EventKind::kFree, id));
  dead_since_ns_.erase(id);
  outside_.Remove(id);
  Decide();
}

void Flow::Tick(uint64_t now_ns) {
  now_ns_ = now_ns;
  spare_.Tick();
  if (jobs_.empty() && requests_.empty()) return;
  ConsumeRings(kRecordsPerTick);
  PollFences(now_ns);
  if (frozen_) return;
  SettleUnprofiled();
  NoticeStandstill();
  AdmitWaiting();
  GiveUpHolders();
  YieldToQuarantine();
  DenyOverdue();
  GiveUpMoves();
  Decide();
  SendNotices();
}

Urgency Flow::urgency() const {
  if (jobs_.empty()) return Urgency::kIdle;
  const bool somebody_waits = !requests_.empty() || !held_back_.empty();
  if (fences_pending_ > 0 && somebody_waits) return Urgency::kFences;
  return PlacesMatter() ? Urgency::kPlaces : Urgency::kTimers;
}

}  // namespace sluice::flow
