// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// From operation records to a published profile, and from gate 0 frames to iterations.
#include <algorithm>
#include <utility>

#include "noderuntime/flow/flow.h"
#include "noderuntime/flow/profile_page.h"
#include "scheduler/ledger/limits.h"

namespace sluice::flow {

using scheduler::DeviationReason;
using scheduler::EventKind;
using scheduler::Phase;
using scheduler::Record;
using scheduler::RequestKind;

namespace {

/// The claim follows the most that was held in this many latest iterations behind gates.
constexpr size_t kRememberedIterations = 16;

static_assert(scheduler::GateOptions().max_gates <= protocol::kMaxGates);

}  // namespace

void Flow::ConsumeRings(size_t max_records) {
  for (auto& [id, job] : jobs_) ReadRing(id, &job, max_records);
}

/// As many as the job may still have read now. True: it has come past a gate.
bool Flow::ReadRing(JobId id, FlowJob* job, size_t max_records) {
  return ConsumeRing(id, job, std::min<size_t>(max_records, job->records.Left(now_ns_)));
}

/// True: it has come past a gate.
bool Flow::ConsumeRing(JobId id, FlowJob* job, size_t max_records) {
  const uint64_t pool_bytes = uint64_t{options_.pool_units} * options_.unit_bytes;
  scheduler::IterationRecorder* recorder = job->recorder.has_value() ? &*job->recorder : nullptr;
  const RingReader::Outcome outcome =
      job->ring.Consume(&job->profiler, max_records, pool_bytes, recorder);
  job->records.Spend(outcome.records, now_ns_);
  job->copies += outcome.copies;
  if (outcome.launches > 0 || outcome.copies > 0) {
    job->last_sign_ns = job->last_work_ns = now_ns_;
    SetQuiet(id, false);
  }
  if (outcome.launches > 0) {
    job->launches += outcome.launches;
    if (job->waited_for_since_ns != 0) job->waiting_launches += outcome.launches;
  }
  if (job->pages.client->collectives.load(std::memory_order_relaxed) != 0) NoteCollectives(id, job);
  if (outcome.lost) job->profiler.Restart();
  if (recorder != nullptr) {
    if (outcome.lost) recorder->Forget();
    recorder->Follow(job->profiler, now_ns_, jobs_.size() == 1);
  }
  if (job->profiler.generation() != job->profiler_generation) {
    job->profiler_generation = job->profiler.generation();
    if (job->awaits_cycle) {
      const std::optional<scheduler::Profile> found = job->profiler.Current();
      const bool same = found.has_value() && job->published.has_value() &&
                        found->period == job->published->profile.period;
      if (same) job->awaits_cycle = false;
    } else if (job->published.has_value()) {
      Withdraw(id, job, {DeviationReason::kCycle, "its launches are another cycle now"});
    }
  }
  PublishIfReady(id, job);
  return FollowPlace(id, job);
}

scheduler::GateOptions Flow::GatesOf(const FlowJob& job) {
  scheduler::GateOptions gates;
  if (job.collectives) gates.max_gates = 1;
  if (job.spec.stitches) gates.placing = scheduler::Placing::kPieces;
  return gates;
}

void Flow::PublishIfReady(JobId id, FlowJob* job) {
  if (options_.spatial) return;
  if (job->published.has_value() || !job->admitted || !job->profiler.certain()) return;
  if (job->profiler.wants_times()) return;
  const scheduler::Job* known = ledger_.Find(id);
  if (known == nullptr || known->phase != Phase::kUnprofiled) return;
  std::optional<scheduler::Profile> profile = job->profiler.Current();
  if (!profile.has_value() || !profile->timed) return;
  Published made;
  made.plan = scheduler::PlanGates(*profile, options_.unit_bytes, GatesOf(*job));
  made.plan.credit_ns = CreditOf(*profile);
  made.id = job->next_profile;
  made.launches_before = job->launches;
  made.profile = std::move(*profile);
  made.told = Published::Told{HoldsWhole(*job), made.plan.credit_ns};
  if (!PublishProfile(made.profile, ToldOf(made.plan, made.told->whole), made.id,
                      job->pages.daemon))
    return;
  ++job->next_profile;
  ++changes_;
  job->published = std::move(made);
  LearnCourse(id, job);
  job->measured_use = std::max(job->use, known->leased);
  job->past_use.clear();
  job->held.Forget();
  job->times.Forget();
  job->stray_frames = 0;
  job->largest_run = 0;
  job->gated_iteration = false;
  if (job->spec.limit > 0) return;
  // Nobody limited it; now that its use is known the rest of the pool can be promised to others.
  const Units limit = std::max(known->held(), scheduler::WithTenth(known->peak));
  Ledger next = ledger_;
  if (limit < known->limit && next.SetLimit(id, limit).ok()) ReplaceLedger(std::move(next));
}

void Flow::Withdraw(JobId id, FlowJob* job, const Deviation& deviation) {
  GiveUpSoftBudget("what job " + std::to_string(id) + " will need is not known any more");
  job->published.reset();
  courses_.erase(id);
  job->awaits_cycle = false;
  ++changes_;
  job->profiler_generation = job->profiler.generation();
  WithdrawProfile(job->pages.daemon);
  const scheduler::Job* known = ledger_.Find(id);
  if (known == nullptr) return;
  if (known->phase == Phase::kRunning) LoseProfile(id, deviation);
  Request* request = RequestOf(id);
  if (request == nullptr) return;
  if (request->kind != RequestKind::kGate0 && request->kind != RequestKind::kSwapIn) return;
  // It stands at its gate: whatever it does next is unknown, so it claims all it may ever hold.
  request->claim = known->limit;
  request->piece = known->unknown_piece();
  request->returns = false;
}

/// What log, metrics and the program's own stderr say of it is one sentence. A program that
/// deviates in every iteration would fill its terminal with it.
void Flow::LoseProfile(JobId id, const Deviation& deviation) {
  if (!ledger_.LoseProfile(id).ok()) return;
  Record record = RecordFor(EventKind::kMismatch, id);
  record.piece = ledger_.Find(id)->terms.piece;
  record.reason = ReasonName(deviation.reason);
  record.text = std::string("left its iteration: ") + deviation.how +
                "; nobody counts on what it gives back until its cycle is known again";
  const Line line = {record.text, About::kRecord};
  Log(std::move(record));
  FlowJob* job = Get(id);
  constexpr uint64_t kNoticeEveryNs = 60'000'000'000;
  if (job != nullptr &&
      (job->deviation_told_ns == 0 || now_ns_ - job->deviation_told_ns >= kNoticeEveryNs)) {
    job->deviation_told_ns = now_ns_;
    sink_->Notice(id, 0, line);
  }
}

/// False: it did not (Must).
bool Flow::ArriveAtTrough(JobId id, FlowJob* job, const protocol::Gate& gate, bool drained) {
  EndCourse(id);
  const scheduler::Job* known = ledger_.Find(id);
  if (job->gated_iteration) {
    if (job->past_use.size() >= kRememberedIterations) job->past_use.pop_front();
    job->past_use.push_back(job->use);
    job->held.End();
    job->times.End(now_ns_);
  }
  if (!drained && known->phase == Phase::kRunning && known->terms.returns) {
    // It was to give back all but its base and did not: nothing can be built on its profile now.
    LoseProfile(id,
                {DeviationReason::kKept, "it kept more at its trough than it was to give back"});
  }
  Record record = RecordFor(EventKind::kTrough, id);
  record.drained = drained;
  record.iteration = gate.iteration;
  if (!Must(id, ledger_.ReachTrough(id, drained))) return false;
  Log(std::move(record));
  if (!drained) return true;

  known = ledger_.Find(id);
  Record base = RecordFor(EventKind::kBase, id);
  base.units = known->held();
  Log(std::move(base));
  job->trough_held = std::max(job->trough_held, known->held());
  // A job that was settled had its limit reserved.
  const Units request = job->spec.request != 0 ? job->spec.request : job->trough_held;
  if (known->request != std::min(request, known->limit)) {
    Ledger next = ledger_;
    SetRequest(&next, id, request, [this](JobId other) { return MayYield(other); });
    ReplaceLedger(std::move(next));
  }
  return true;
}

/// So many iterations behind gates have to be seen before the claim is cut close. Every unit
/// claimed and not used is a unit that nobody can be lent; a claim that proves too small costs the
/// job its life when nobody else can move. A search behind gates packs worse than it did while the
/// job was measured.
bool Flow::Careful(const FlowJob& job) {
  constexpr size_t kCarefulIterations = 2;
  return job.past_use.size() < kCarefulIterations;
}

/// A client that asks in pieces of its largest block has no use for less; and one to which any
/// units do packs its blocks no better. Of a job with a profile.
Units Flow::WithMargin(Units units, const FlowJob& job) {
  return scheduler::WithClaimMargin(units, job.published->plan.piece_units);
}

/// Of a job with a profile, in an iteration.
Units Flow::MostUsed(const FlowJob& job) {
  const Units peak = job.published->plan.peak_units;
  Units most = Careful(job) ? std::max(peak, job.measured_use) : peak;
  for (const Units use : job.past_use) most = std::max(most, use);
  return most;
}

Units Flow::ClaimFor(const FlowJob& job) const {
  const scheduler::Job& known = *ledger_.Find(job.spec.id);
  const bool careful = Careful(job);
  const Units most = MostUsed(job);
  const Units with_margin = WithMargin(most, job);
  const Units wanted = careful ? std::max(scheduler::WithTenth(most), with_margin) : with_margin;
  return std::max(
      std::min({wanted, known.limit - known.outside, LargestClaim(ledger_, job.spec.id)}),
      known.held());
}

Flow::Request Flow::GateZero(JobId id, const FlowJob& job) const {
  const scheduler::Job& known = *ledger_.Find(id);
  const scheduler::CyclePlan& plan = job.published->plan;
  const bool whole = HoldsWhole(job);
  Request request;
  request.job = id;
  request.kind = RequestKind::kGate0;
  request.claim = ClaimFor(job);
  request.piece =
      job.spec.stitches ? 1 : std::max<Units>({1, plan.piece_units + 1, job.largest_run});
  request.returns = job.pressure && options_.credit;  // without it nobody drains
  const Units need =
      std::min(whole ? plan.peak_units : plan.gates.front().need_units, request.claim);
  request.units = need > known.leased ? need - known.leased : 0;
  const Units run = whole ? plan.piece_units : plan.gates.front().contiguous;
  WantRun(&request, std::min(run, request.units), job.spec);
  return request;
}

}  // namespace sluice::flow
