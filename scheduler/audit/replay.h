// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <map>
#include <string>
#include <vector>

#include "scheduler/audit/audit.h"
#include "scheduler/record/record.h"

namespace sluice::scheduler::audit {

/// Of what a job has in host memory, where the log tells of copies.
enum class Copy : uint8_t { kNone, kLeaving, kAway, kReturning };

enum class Where : uint8_t { kWaiting, kTrough, kIteration, kUnknownIteration, kAway, kDead };

struct ReplayJob {
  Where where = Where::kWaiting;
  bool returns = false;
  bool drained = false;
  bool settled = false;     // without a profile, and nobody waits for one
  bool quiet = false;       // without a profile, and it computes nothing
  bool collective = false;  // quiet: maybe because it waits for another GPU
  Units request = 0;
  Units limit = 0;
  Units claim = 0;
  Units waives = 0;  // of the claim: it will not need them again before its trough
  Units piece = kWholeClaim;
  Units held = 0;
  // Its last wait: how much more, in one run of, and what it held then.
  Units wants = 0;
  Units wants_run = 0;
  Units held_when_asked = 0;
  std::vector<bool> away;    // evicted: units that are in host memory
  std::vector<bool> copied;  // the same, by what copied them
  Copy copy = Copy::kNone;
  bool away_from_trough = false;  // evicted: by turns, at its trough
  Units outside = 0;              // what counts against its limit
  uint64_t outside_bytes = 0;     // all of it
  std::vector<bool> base;         // held at the last two drained troughs
  std::vector<bool> last_trough;  // at the last one
  bool past_gate() const { return where == Where::kIteration || where == Where::kUnknownIteration; }
};

enum class Cell : uint8_t { kFree, kLeased, kUnfenced, kSpare, kQuarantined };

struct ReplayUnit {
  Cell cell = Cell::kFree;
  JobId holder = kNoJob;
  ReleaseId release = 0;
  JobId lender = kNoJob;  // released it inside its iteration, which goes on
  JobId leaves = kNoJob;  // it is being copied to host memory for this job
};

/// One unit at a time, so that it has no arithmetic in common with the ledger's spans.
class Replay {
 public:
  explicit Replay(Units units) : units_(units) {}

  /// Applies a record as far as it makes sense and says what does not.
  std::vector<AuditViolation> Apply(const Record& record);

  const std::map<JobId, ReplayJob>& jobs() const { return jobs_; }
  Units free() const;
  Units Count(JobId job, Cell cell) const;
  /// Units of this record that a lender gave up inside its iteration, by lender.
  const std::map<JobId, Units>& lent() const { return lent_; }
  bool two_holders() const { return two_holders_; }
  bool AdmissionHolds() const;
  size_t PastGate() const;
  bool Safe(bool in_sums) const;

 private:
  void Complain(const std::string& rule, const std::string& text) {
    complaints_.push_back({0, rule, text});
  }
  /// Calls `change` for each unit of the extents that lies in the pool; complains about the others.
  template <typename Change>
  void ForEach(const Extents& extents, Change change);
  void Restore(const Record& record);
  void Grant(JobId id, ReplayJob* job, const Extents& extents);
  void Reclaim(JobId id, ReplayJob* job, const Extents& extents);
  void Open(const Record& record, ReplayJob* job);
  void Evict(const Record& record, ReplayJob* job);
  void BringBack(const Record& record, ReplayJob* job);
  void CopyOut(const Record& record, ReplayJob* job);
  void CopyBack(const Record& record, ReplayJob* job);
  void ForgetCopy(JobId id, ReplayJob* job);
  void Compare(const Extents& extents, const ReplayJob& job, const std::string& what);
  void StandsStill(const Record& record, const ReplayJob& job);
  void Unknown(const Record& record, const ReplayJob& job);
  bool RoomForAll(JobId asks) const;
  void Trough(JobId id, ReplayJob* job, bool drained);
  void OfJob(const Record& record, ReplayJob* job);
  void StopLending(JobId id);
  void Expect(bool holds, const Record& record, const char* where);

  std::vector<ReplayUnit> units_;
  std::map<JobId, ReplayJob> jobs_;
  std::map<JobId, Units> lent_;
  bool two_holders_ = false;
  bool restoring_ = true;     // nothing has been decided yet
  bool copies_told_ = false;  // the log tells of copies; one of an older daemon does not
  std::vector<AuditViolation> complaints_;
};

}  // namespace sluice::scheduler::audit
