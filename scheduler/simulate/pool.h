// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "scheduler/ledger/ledger.h"
#include "scheduler/policy/policy.h"
#include "scheduler/simulate/simulate.h"

namespace sluice::scheduler::simulate {

/// The memory of the model: what the daemon's flow and the clients' arenas do together on a live
/// node, on the same ledger and with the same decisions. A job leases at its gates what the group
/// behind them needs at most, and releases what it does not need there. Job i has the id i + 1.
class Pool {
 public:
  Pool(const Options& options, const std::vector<const Workload*>& jobs);

  /// Everybody at its trough with its base. kResourceExhausted: not all fit.
  Status Begin();

  /// The job stands at gate `gate` of its plan, after `launched` launches in all; what the group
  /// does not need is released, with the fence "these launches are done". Gate 0 opens an
  /// iteration.
  void Ask(size_t job, size_t gate, uint64_t launched);
  /// At the end of its iteration. `drained`: its GPU has nothing left.
  void Trough(size_t job, uint64_t launched, bool drained);
  /// Its GPU has done so many launches.
  void Done(size_t job, uint64_t done);
  /// Who may go on, in the order of the answers. kResourceExhausted: somebody was refused.
  /// kInternal: the model broke a rule of the ledger.
  Result<std::vector<size_t>> Answer(double now_ns);

  bool asks(size_t job) const { return asking_[job]; }
  bool SomebodyElseAsks(size_t job) const;
  Units held() const { return ledger_.pool_units() - ledger_.free(); }
  Units held(size_t job) const { return ledger_.held(Id(job)); }
  uint64_t decisions() const { return decisions_; }
  std::vector<Record> TakeRecords() { return std::move(records_); }
  const Ledger& ledger() const { return ledger_; }

 private:
  struct Open {  // a release that waits for its fence
    ReleaseId id = 0;
    uint64_t launches = 0;
  };

  static JobId Id(size_t job) { return static_cast<JobId>(job + 1); }
  void Release(size_t job, Units keep, uint64_t launched);
  void PromoteFencedOut();
  /// Of the model's own making: an error is a bug in it, and the next Answer says so.
  void Must(const Status& status);
  void Log(Record record, double now_ns);

  const Options& options_;
  const std::vector<const Workload*>& jobs_;
  Ledger ledger_;
  std::vector<Request> requests_;
  std::vector<Request> fenced_out_;  // see WaitsForOwnFences
  std::vector<bool> asking_;
  std::vector<std::deque<Open>> open_;
  std::vector<std::vector<Units>> ahead_;  // [job][gate]: most it holds from that gate on
  std::vector<uint64_t> iterations_;
  ReleaseId next_release_ = 1;
  uint64_t next_ticket_ = 1;
  uint64_t decisions_ = 0;
  bool changed_ = false;
  Status broken_;
  double now_ns_ = 0;
  std::vector<Record> records_;
};

}  // namespace sluice::scheduler::simulate
