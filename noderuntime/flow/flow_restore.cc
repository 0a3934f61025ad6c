// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// From one daemon to the next: the flow's state as bytes, and what a client says it really holds.
#include <algorithm>
#include <utility>

#include "noderuntime/flow/flow.h"
#include "noderuntime/flow/profile_page.h"
#include "scheduler/ledger/snapshot.h"

namespace sluice::flow {

using scheduler::DeviationReason;
using scheduler::EventKind;
using scheduler::Phase;
using scheduler::Record;
using scheduler::RequestKind;
using scheduler::UnitState;

namespace {

Status Breach(const std::string& text) { return Status(StatusCode::kInvalidArgument, text); }

void WritePublished(const Published& published, ByteWriter* out) {
  const scheduler::Profile& profile = published.profile;
  out->Put(published.id);
  out->Put(profile.period);
  out->Put(profile.pacing_stream);
  out->Put(profile.window);
  out->Put(profile.trough_hash);
  out->Put(profile.trough_place);
  out->Put(profile.base_bytes);
  out->Put(profile.peak_bytes);
  out->Put(profile.iteration_ns);
  out->Put(published.plan.peak_units);
  out->Put(published.plan.piece_units);
  out->Put(published.plan.credit_ns);
  out->PutList(published.plan.gates, [out](const scheduler::GatePlan& gate) {
    out->Put(gate.launch);
    out->Put(gate.need_units);
    out->Put(gate.contiguous);
  });
}

/// What only the making of gates needs (what is live at each launch) is gone: the gates are made.
Published ReadPublished(ByteReader* in) {
  Published published;
  scheduler::Profile& profile = published.profile;
  published.id = in->Get<uint32_t>();
  profile.period = in->Get<uint32_t>();
  profile.pacing_stream = in->Get<uint8_t>();
  profile.window = in->Get<uint32_t>();
  profile.trough_hash = in->Get<uint64_t>();
  profile.trough_place = in->Get<scheduler::TroughPlace>();
  profile.base_bytes = in->Get<uint64_t>();
  profile.peak_bytes = in->Get<uint64_t>();
  profile.iteration_ns = in->Get<uint64_t>();
  profile.timed = true;
  published.plan.peak_units = in->Get<Units>();
  published.plan.piece_units = in->Get<Units>();
  published.plan.credit_ns = in->Get<uint64_t>();
  in->GetList([&] {
    scheduler::GatePlan gate;
    gate.launch = in->Get<uint32_t>();
    gate.need_units = in->Get<Units>();
    gate.contiguous = in->Get<Units>();
    published.plan.gates.push_back(gate);
  });
  return published;
}

/// The profile that stands in the page is the one that the flow knows; a daemon may have died while
/// it wrote either.
bool Agrees(const std::optional<Published>& published, const protocol::DaemonPage& page) {
  return (page.profile_seq.load() & 1) == 0 &&
         page.profile_id == (published.has_value() ? published->id : 0) &&
         (!published.has_value() || !published->plan.gates.empty());
}

Result<Extents> Declared(const std::vector<protocol::Extent>& list, Units pool) {
  Extents extents;
  uint64_t sum = 0;
  for (const protocol::Extent& extent : list) {
    if (extent.offset >= pool || extent.length > pool - extent.offset) {
      return Breach("Resume names units outside the pool");
    }
    extents.push_back({extent.offset, extent.length});
    sum += extent.length;
  }
  extents = scheduler::Merge(std::move(extents));
  if (scheduler::TotalUnits(extents) != sum) return Breach("Resume names a unit twice");
  return extents;
}

}  // namespace

void Flow::Save(ByteWriter* out) const {
  scheduler::WriteLedger(ledger_, out);
  out->Put(beyond_);
  out->Put(static_cast<uint32_t>(jobs_.size()));
  for (const auto& [id, job] : jobs_) {
    out->Put(id);
    out->PutText(job.spec.name);
    out->Put(job.spec.limit);
    out->Put(job.spec.request);
    out->Put(job.spec.stitches);
    out->Put(job.admitted);
    out->PutText(job.refusal);
    out->Put(job.next_release);
    out->Put(job.epoch);
    out->Put(job.next_profile);
    out->Put(job.use);
    out->Put(job.measured_use);
    out->PutList(job.past_use, [out](Units use) { out->Put(use); });
    out->Put(job.largest_run);
    out->Put(job.trough_held);
    out->Put(job.gated_iteration);
    out->Put(job.moving == Moving::kAway || job.moving == Moving::kReturning);
    out->Put(job.published.has_value());
    if (job.published.has_value()) WritePublished(*job.published, out);
  }
  out->PutList(outside_.jobs(), [&](const auto& entry) {
    out->Put(entry.first);
    out->PutText(entry.second.title);
    out->PutList(entry.second.families, [&](const auto& family) {
      out->Put(family.first);
      out->Put(family.second);
    });
  });
}

Result<std::unique_ptr<Flow>> Flow::Restore(const FlowOptions& options, FlowSink* sink,
                                            ByteReader* in, const std::map<JobId, JobPages>& pages,
                                            uint64_t now_ns) {
  Result<Ledger> ledger = scheduler::ReadLedger(in);
  if (!ledger.ok()) return ledger.status();
  if (ledger->pool_units() != options.pool_units || ledger->unit_bytes() != options.unit_bytes) {
    return Breach("the kept state is of another pool");
  }
  auto flow = std::make_unique<Flow>(options, sink);
  flow->ledger_ = std::move(*ledger);
  flow->beyond_ = in->Get<Units>();
  flow->now_ns_ = flow->budget_since_ns_ = now_ns;
  flow->frozen_ = true;
  in->GetList([&] { flow->RestoreJob(in, pages); });
  Status charged;
  in->GetList([&] {
    const auto id = in->Get<JobId>();
    const std::string title = in->GetText();
    in->GetList([&] {
      const auto family = in->Get<uint32_t>();
      const auto bytes = in->Get<uint64_t>();
      if (charged.ok()) charged = flow->outside_.Charge(id, title, family, bytes);
    });
  });
  if (!charged.ok()) return charged;
  if (!in->ok()) return Breach("the kept state ends too early");
  flow->LogRestored();
  for (auto& [id, job] : flow->jobs_) {
    flow->SettleProfile(id, &job);
    if (job.published.has_value()) flow->LearnCourse(id, &job);
  }
  std::vector<JobId> orphans;
  for (const scheduler::Job& job : flow->ledger_.jobs()) {
    const bool unknown = flow->Get(job.id) == nullptr && job.id != scheduler::kBeyondBudget;
    if (job.phase != Phase::kDying && unknown) orphans.push_back(job.id);
  }
  // Nobody can speak for them any more.
  for (const JobId id : orphans) {
    if (flow->Must(id, flow->ledger_.Die(id))) flow->Log(flow->RecordFor(EventKind::kDeath, id));
  }
  for (const scheduler::Job& job : flow->ledger_.jobs()) {
    if (job.phase == Phase::kDying) flow->dead_since_ns_[job.id] = now_ns;
  }
  return flow;
}

void Flow::RestoreJob(ByteReader* in, const std::map<JobId, JobPages>& pages) {
  JobSpec spec;
  spec.id = in->Get<JobId>();
  spec.name = in->GetText();
  spec.limit = in->Get<Units>();
  spec.request = in->Get<Units>();
  spec.stitches = in->Get<uint8_t>() != 0;
  const auto found = pages.find(spec.id);
  FlowJob job(spec, found == pages.end() ? JobPages() : found->second, ClientHash());
  const auto flag = [in] { return in->Get<uint8_t>() != 0; };
  job.admitted = flag();
  job.refusal = in->GetText();
  job.next_release = in->Get<scheduler::ReleaseId>();
  job.epoch = in->Get<uint64_t>();
  job.next_profile = in->Get<uint32_t>();
  job.use = in->Get<Units>();
  job.measured_use = in->Get<Units>();
  in->GetList([&] { job.past_use.push_back(in->Get<Units>()); });
  job.largest_run = in->Get<Units>();
  job.trough_held = in->Get<Units>();
  job.gated_iteration = flag();
  const bool moved = flag();
  if (flag()) job.published = ReadPublished(in);
  // Without pages its session ended while the state was written; nobody can speak for it any more.
  // And the last daemon took with it what it had of the job in host memory.
  if (!in->ok() || found == pages.end() || moved) return;

  job.last_sign_ns = job.last_work_ns = now_ns_;
  const protocol::ClientPage& client = *job.pages.client;
  // What was not read yet is passed over: the profiler begins anew, from what is live now.
  // Once: the client may write another head at any time.
  const uint64_t head = client.head.load();
  job.ring = RingReader(job.pages, head, client.lost.load());
  job.pages.daemon->tail.store(head);
  const uint64_t pool_bytes = uint64_t{options_.pool_units} * options_.unit_bytes;
  job.profiler.Consume(
      {scheduler::OpKind::kAlloc, 0, 0, std::min(client.live_bytes.load(), pool_bytes)});
  job.flags = job.pages.daemon->flags.load();
  job.pressure = (job.flags & protocol::kPressure) != 0;
  job.awaits_cycle = job.published.has_value();
  const JobId id = spec.id;
  jobs_.emplace(id, std::move(job));
  const scheduler::Job* known = ledger_.Find(id);
  FlowJob* kept = Get(id);
  kept->admitted = known != nullptr && known->phase != Phase::kDying;
  if (!kept->admitted && kept->refusal.empty()) kept->waits_since_ns = now_ns_;
  if (kept->admitted && known->phase == Phase::kWaiting) {
    Request request;
    request.job = id;
    request.kind = RequestKind::kNewcomer;
    Enqueue(id, request);
  }
  PublishLimit(id);
}

/// The page and the flow say the same about the profile afterwards: none, if they did not.
void Flow::SettleProfile(JobId id, FlowJob* job) {
  protocol::DaemonPage& page = *job->pages.daemon;
  job->next_profile = std::max(job->next_profile, page.profile_id + 1);
  if (Agrees(job->published, page)) return;
  const uint32_t seq = page.profile_seq.load();
  if ((seq & 1) != 0) page.profile_seq.store(seq + 1);
  job->awaits_cycle = false;
  Withdraw(id, job,
           {DeviationReason::kRestart, "the daemon was replaced while its profile changed"});
}

void Flow::LogRestored() {
  for (const scheduler::Job& job : ledger_.jobs()) {
    Record record = RecordFor(EventKind::kRestore, job.id);
    record.name = job.name;
    record.text = PhaseName(job.phase);
    record.request = job.request;
    record.limit = job.limit;
    if (job.past_gate()) {
      record.claim = job.terms.claim;
      record.waives = job.terms.waived;
      record.piece = job.terms.piece;
      record.returns = job.terms.returns;
    }
    record.drained = job.drained;
    record.settled = job.settled;
    record.extents = ledger_.map().Held(job.id);
    record.base = job.base;
    record.last_trough = job.last_trough;
    Log(std::move(record));
  }
  for (const scheduler::Job& job : ledger_.jobs()) {
    const std::map<uint32_t, uint64_t> families = outside_.families(job.id);
    if (!families.empty()) LogOutside(job.id, families.begin()->first);
    if (job.phase == Phase::kDying) {
      Log(RecordFor(EventKind::kDeath, job.id));
      continue;
    }
    std::map<scheduler::ReleaseId, Extents> unfenced;
    for (const scheduler::Span& span : ledger_.map().spans()) {
      if (span.holder != job.id || span.state != UnitState::kUnfenced) continue;
      unfenced[span.release].push_back({span.offset, span.length});
    }
    for (const auto& [release, extents] : unfenced) LogRelease(job.id, release, extents);
    const Extents spare = ledger_.map().Held(job.id, UnitState::kSpare);
    FlowJob* known = Get(job.id);
    if (spare.empty() || known == nullptr) continue;
    const scheduler::ReleaseId release = known->next_release++;
    LogRelease(job.id, release, spare);
    Record fenced = RecordFor(EventKind::kFenced, job.id);
    fenced.release = release;
    Log(std::move(fenced));
  }
}

void Flow::LogRelease(JobId id, scheduler::ReleaseId release, const Extents& extents) {
  Record record = RecordFor(EventKind::kRelease, id);
  record.extents = extents;
  record.release = release;
  Log(std::move(record));
}

Status Flow::Resume(JobId id, const session::Declaration& declared, uint64_t now_ns) {
  now_ns_ = now_ns;
  FlowJob* job = Get(id);
  if (job == nullptr) return Breach("Resume of a job that is not known any more");
  Result<Extents> held = Declared(declared.held, options_.pool_units);
  if (!held.ok()) return held.status();
  Result<Extents> released = Declared(declared.released, options_.pool_units);
  if (!released.ok()) return released.status();
  const Extents leased = ledger_.map().Held(id, UnitState::kLeased);
  const Extents unfenced = ledger_.map().Held(id, UnitState::kUnfenced);
  const Extents surplus = Subtract(*held, leased);
  if (!surplus.empty()) {
    return Breach("Resume names " + ledger_.Bytes(TotalUnits(surplus)) +
                  " that were never granted to this job");
  }
  if (!Subtract(*released, Union(leased, unfenced)).empty() ||
      !Intersect(*held, *released).empty()) {
    return Breach("Resume names releases of units that this job did not hold");
  }

  // What the last daemon had read of the releases. The client's fence covers those that it still
  // names; the GPU is done with the others.
  std::map<scheduler::ReleaseId, PendingRelease> open;
  for (const scheduler::Span& span : ledger_.map().spans()) {
    if (span.holder != id || span.state != UnitState::kUnfenced) continue;
    PendingRelease& release = open[span.release];
    release.id = span.release;
    release.extents.push_back({span.offset, span.length});
  }
  for (auto& [number, release] : open) {
    job->next_release = std::max(job->next_release, number + 1);
    if (!Intersect(scheduler::Merge(release.extents), *released).empty()) {
      release.fence = declared.fence;
    }
    job->releases.push_back(std::move(release));
    ++fences_pending_;
  }
  // What it had not read, and what it granted in a frame that never came.
  if (Status s = ReleaseUnread(id, job, Intersect(*released, leased), declared.fence); !s.ok()) {
    return s;
  }
  const Extents never = Subtract(Subtract(leased, *held), *released);
  if (Status s = ReleaseUnread(id, job, never, {}); !s.ok()) return s;
  if (Status s = ResumeOutside(id, job, declared); !s.ok()) return s;
  job->epoch = std::max(job->epoch, declared.epoch);
  if (declared.rejected != 0 && job->published.has_value() &&
      job->published->id == declared.rejected) {
    job->profiler.Restart();
    Withdraw(id, job, {DeviationReason::kRestart, "it left its cycle while there was no daemon"});
  }
  CollectFences(id, job);
  Decide();
  return {};
}

Status Flow::ReleaseUnread(JobId id, FlowJob* job, const Extents& extents,
                           const std::vector<protocol::FenceTerm>& fence) {
  if (extents.empty()) return {};
  PendingRelease release;
  release.id = job->next_release++;
  release.fence = fence;
  release.extents = extents;
  if (Status s = ledger_.Release(id, extents, release.id); !s.ok()) return s;
  LogRelease(id, release.id, extents);
  job->releases.push_back(std::move(release));
  ++fences_pending_;
  return {};
}

/// What was let go of while nobody listened. The client is told of a charge after it was kept, so
/// it never has more than that.
Status Flow::ResumeOutside(JobId id, FlowJob* job, const session::Declaration& declared) {
  for (uint32_t family = 0; family < declared.outside_bytes.size(); ++family) {
    const uint64_t bytes = declared.outside_bytes[family];
    if (family >= static_cast<uint32_t>(protocol::Family::kImported)) {
      if (bytes > 0) job->counted[family] = bytes;
      continue;
    }
    uint64_t now = bytes;
    if (family == static_cast<uint32_t>(protocol::Family::kContext)) {
      if (options_.context_bytes == 0) continue;
      if (bytes >= outside_.reserve() / options_.context_bytes) {
        return Breach("Resume names more contexts than the GPU has room for");
      }
      now = (bytes + 1) * options_.context_bytes;  // and the session's own
      // Charged by a daemon that was told another price: left as it is.
      if (outside_.charged(id, family) % options_.context_bytes != 0 ||
          now > outside_.charged(id, family)) {
        continue;
      }
    }
    const uint64_t kept = outside_.charged(id, family);
    if (now > kept) {
      return Breach("Resume names memory outside the pool that was never charged");
    }
    if (now == kept) continue;
    if (Status s = outside_.Uncharge(id, family, kept - now); !s.ok()) return s;
    if (ledger_.Find(id) != nullptr)
      (void)Must(id, ledger_.SetOutside(id, OutsideUnits(id, *job, 0)));
    LogOutside(id, family);
  }
  return {};
}

void Flow::Thaw(uint64_t now_ns) {
  now_ns_ = now_ns;
  frozen_ = false;
  for (auto& [id, job] : jobs_) job.last_sign_ns = job.last_work_ns = now_ns;
  if (options_.spatial) ReserveOrTakeTurns();
  // By what the last daemon went may be another policy.
  TellAmounts();
  Decide();
}

}  // namespace sluice::flow
