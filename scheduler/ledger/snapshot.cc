// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/ledger/snapshot.h"

#include <algorithm>

namespace sluice::scheduler {

namespace {

// A new member of these has to be written and read here. `quiet` and `linger` are not: they are
// questions of time, and whoever takes over counts it anew; `collective` stands in the job's pages;
// `loose` and `missing` follow from the rest; nobody has been in host memory before this daemon.
#if defined(__x86_64__) && defined(__GLIBCXX__) && !defined(_GLIBCXX_DEBUG)
static_assert(sizeof(Job) == 232 && sizeof(GateTerms) == 16 && sizeof(Span) == 24);
#endif

void WriteJob(const Job& job, ByteWriter* out) {
  out->Put(job.id);
  out->PutText(job.name);
  out->Put(job.phase);
  out->Put(job.stitches);
  out->Put(job.request);
  out->Put(job.limit);
  out->Put(job.terms.claim);
  out->Put(job.terms.piece);
  out->Put(job.terms.returns);
  out->Put(job.terms.end);
  out->Put(job.terms.waived);
  out->Put(job.settled);
  out->Put(job.drained);
  out->Put(job.leased);
  out->Put(job.unfenced);
  out->Put(job.spare);
  out->Put(job.quarantined);
  out->Put(job.outside);
  out->Put(job.peak);
  WriteExtents(job.base, out);
  WriteExtents(job.last_trough, out);
  WriteExtents(job.away, out);
  out->Put(job.away_from);
}

bool GetFlag(ByteReader* in) { return in->Get<uint8_t>() != 0; }

Job ReadJob(ByteReader* in) {
  Job job;
  job.id = in->Get<JobId>();
  job.name = in->GetText();
  job.phase = in->Get<Phase>();
  job.stitches = GetFlag(in);
  job.request = in->Get<Units>();
  job.limit = in->Get<Units>();
  job.terms.claim = in->Get<Units>();
  job.terms.piece = in->Get<Units>();
  job.terms.returns = GetFlag(in);
  job.terms.end = in->Get<End>();
  job.terms.waived = in->Get<Units>();
  job.settled = GetFlag(in);
  job.drained = GetFlag(in);
  job.leased = in->Get<Units>();
  job.unfenced = in->Get<Units>();
  job.spare = in->Get<Units>();
  job.quarantined = in->Get<Units>();
  job.outside = in->Get<Units>();
  job.peak = in->Get<Units>();
  job.base = ReadExtents(in);
  job.last_trough = ReadExtents(in);
  job.away = ReadExtents(in);
  // A daemon of before wrote whether the job had no profile, as 0 or 1.
  const auto away_from = in->Get<Phase>();
  job.away_from = away_from == Phase::kWaiting ? Phase::kRunning : away_from;
  return job;
}

}  // namespace

void WriteExtents(const Extents& extents, ByteWriter* out) {
  out->PutList(extents, [out](const Extent& extent) { out->PutAll(extent.offset, extent.length); });
}

Extents ReadExtents(ByteReader* in) {
  Extents extents;
  in->GetList([&] {
    const auto offset = in->Get<Units>();
    extents.push_back({offset, in->Get<Units>()});
  });
  return extents;
}

void WriteLedger(const Ledger& ledger, ByteWriter* out) {
  out->Put(ledger.pool_units());
  out->Put(ledger.unit_bytes());
  out->PutList(ledger.map().spans(), [out](const Span& span) {
    out->PutAll(span.offset, span.length, span.state, span.holder, span.release);
  });
  out->PutList(ledger.jobs(), [out](const Job& job) { WriteJob(job, out); });
}

Result<Ledger> ReadLedger(ByteReader* in, Rules rules) {
  const auto pool = in->Get<Units>();
  const auto unit_bytes = in->Get<uint64_t>();
  std::vector<Span> spans;
  in->GetList([&] {
    Span span;
    span.offset = in->Get<Units>();
    span.length = in->Get<Units>();
    span.state = in->Get<UnitState>();
    span.holder = in->Get<JobId>();
    span.release = in->Get<ReleaseId>();
    spans.push_back(span);
  });
  std::vector<Job> jobs;
  in->GetList([&] { jobs.push_back(ReadJob(in)); });
  if (!in->ok()) return Status(StatusCode::kInvalidArgument, "ledger: the bytes end too early");
  return Ledger::Restore(pool, unit_bytes, rules, spans, std::move(jobs));
}

Result<Ledger> Ledger::Restore(Units pool_units, uint64_t unit_bytes, Rules rules,
                               const std::vector<Span>& spans, std::vector<Job> jobs) {
  const auto bad = [](const std::string& text) {
    return Status(StatusCode::kInvalidArgument, "ledger: " + text);
  };
  Ledger ledger(pool_units, unit_bytes, rules);
  Units at = 0;
  for (const Span& span : spans) {
    if (span.offset != at || span.length == 0 || span.length > pool_units - at ||
        span.state > UnitState::kQuarantined) {
      return bad("the map is broken at unit " + std::to_string(at));
    }
    ledger.map_.Set({span.offset, span.length}, span.state, span.holder, span.release);
    at = span.end();
  }
  if (at != pool_units) return bad("the map ends at unit " + std::to_string(at));
  JobId last = kNoJob;
  for (const Job& job : jobs) {
    if (job.id <= last || job.phase > Phase::kDying || job.terms.end > End::kHigh ||
        job.terms.waived > job.terms.claim) {
      return bad("job " + std::to_string(job.id) + " is broken");
    }
    last = job.id;
  }
  ledger.jobs_ = std::move(jobs);
  for (Job& job : ledger.jobs_) {
    const Extents held = ledger.map_.Held(job.id);
    job.loose = Subtract(held, job.base);
    job.missing = Subtract(job.base, held);
  }
  if (Status broken = ledger.CheckInvariants(); !broken.ok()) return bad(broken.message());
  return ledger;
}

}  // namespace sluice::scheduler
