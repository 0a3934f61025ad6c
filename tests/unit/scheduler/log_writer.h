// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

#include "scheduler/record/record.h"

namespace sluice::scheduler {

/// Writes event logs by hand, one line per record, 10 ns apart.
class LogWriter {
 public:
  explicit LogWriter(Units pool) {
    Record& record = Add(EventKind::kPool, kNoJob);
    record.units = pool;
    record.unit_bytes = 1024;
    record.policy = "flow";
  }

  Record& Add(EventKind kind, JobId job) {
    Record record;
    record.t_ns = records.size() * 10;
    record.event = kind;
    record.job = job;
    records.push_back(record);
    return records.back();
  }
  void Admit(JobId job, Units request, Units limit) {
    Record& record = Add(EventKind::kAdmit, job);
    record.name = "job";
    record.request = request;
    record.limit = limit;
  }
  void Start(JobId job, Units claim) { Add(EventKind::kGate, job).claim = claim; }
  Record& Gate(JobId job, Units claim, const Extents& extents = {}) {
    Record& record = Add(EventKind::kGate, job);
    record.claim = claim;
    record.profiled = record.returns = true;
    record.extents = extents;
    return record;
  }
  Record& Grant(JobId job, const Extents& extents) {
    Record& record = Add(EventKind::kGrant, job);
    record.extents = extents;
    return record;
  }
  void Release(JobId job, const Extents& extents, ReleaseId release) {
    Record& record = Add(EventKind::kRelease, job);
    record.extents = extents;
    record.release = release;
  }
  void Fenced(JobId job, ReleaseId release) { Add(EventKind::kFenced, job).release = release; }
  void Reclaim(JobId job, const Extents& extents) {
    Add(EventKind::kReclaim, job).extents = extents;
  }
  void Trough(JobId job, bool drained = true) { Add(EventKind::kTrough, job).drained = drained; }
  void Leave(JobId job) { Add(EventKind::kLeave, job); }
  /// Admitted, measured and parked with `base`.
  void Parked(JobId job, Units request, Units limit, const Extents& base) {
    Admit(job, request, limit);
    Start(job, limit);
    Grant(job, base);
    Trough(job);
  }

  std::vector<Record> records;
};

}  // namespace sluice::scheduler
