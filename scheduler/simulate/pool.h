// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "scheduler/ledger/ledger.h"
#include "scheduler/policy/policies.h"
#include "scheduler/simulate/ballast.h"
#include "scheduler/simulate/simulate.h"

namespace sluice::scheduler::simulate {

/// The memory of the model: what the daemon's flow and the clients' arenas do together on a live
/// node, on the same ledger and with the same decisions. A job leases at its gates what the group
/// behind them needs at most, and releases what it does not need there; where jobs take turns it
/// has its peak from gate 0 to its trough (docs/adr/0034). Job i has the id i + 1.
class Pool {
 public:
  struct Answered {
    size_t job = 0;
    std::string refused;  // not empty: out of memory, and why; the job is dead
  };

  Pool(const Options& options, const std::vector<JobRun>& runs);

  /// Everybody who is known at its trough with its base. kResourceExhausted: not all fit.
  Status Begin();

  /// A newcomer wants to begin.
  void Arrive(size_t job);
  /// The job stands at gate `gate` of its plan, after `launched` launches in all; what the group
  /// does not need is released, with the fence "these launches are done". Gate 0 opens an
  /// iteration. Whether it needs more than it has.
  bool Ask(size_t job, size_t gate, uint64_t launched);
  /// Whether it has to drain at the trough it has come to: it was measured, and is known from
  /// there.
  bool MustDrain(size_t job) const;
  /// At the end of its iteration. `drained`: its GPU has nothing left.
  void Trough(size_t job, uint64_t launched, bool drained);
  /// Its GPU has done so many launches.
  void Done(size_t job, uint64_t done, double now_ns);
  /// Its GPU has nothing left and its host waits: what it has may be moved, if that was wanted.
  void Still(size_t job, double now_ns);
  bool MustBeStill(size_t job) const { return moves_[job].stage == Move::kAsked; }
  uint32_t evictions(size_t job) const { return moves_[job].done; }
  uint32_t most_overtaken(size_t job) const { return most_overtaken_[job]; }
  /// It ends, drained at its trough or refused, and its GPU has nothing left.
  void Gone(size_t job);
  /// Who may go on, in the order of the answers. kResourceExhausted: somebody was refused who kept
  /// to its profile. kInternal: the model broke a rule of the ledger.
  Result<std::vector<Answered>> Answer(double now_ns);
  /// When to call Answer again although nothing has happened; infinity: never. Exact up to
  /// `until_ns`, from which on any time that is not before it will do.
  double AgainNs(double until_ns);

  bool asks(size_t job) const { return asking_[job]; }
  uint64_t iterations(size_t job) const { return iterations_[job]; }  // begun
  bool SomebodyElseAsks(size_t job) const;
  /// As a node would have it: there are others, or its base is not known yet.
  bool Presses(size_t job) const;
  Units held() const { return ballast_.budget() - ledger_.free(); }
  Units held(size_t job) const { return ledger_.held(Id(job)); }
  Units budget() const { return ballast_.budget(); }
  const std::vector<double>& budget_since_ns() const { return budget_since_ns_; }
  uint64_t decisions() const { return decisions_; }
  std::vector<Record> TakeRecords() { return std::move(records_); }
  const Ledger& ledger() const { return ledger_; }

 private:
  struct Open {  // a release that waits for its fence
    ReleaseId id = 0;
    uint64_t launches = 0;
  };
  struct Member {
    const JobRun* run = nullptr;
    const Workload* workload = nullptr;
    std::vector<Units> ahead;  // [gate]: most it holds from that gate on
    std::vector<Units> kept;   // [gate]: most it needs until its GPU has passed the gate
    uint64_t began = 0;        // launches before its iteration
    Course* course = nullptr;
  };

  struct Move {  // of a job that left its claim, to host memory and back
    enum Stage : uint8_t { kNone, kAsked, kLeaving, kAway, kReturning } stage = kNone;
    Units units = 0;
    double until_ns = 0;  // kLeaving, kReturning
    uint32_t done = 0;
  };

  static JobId Id(size_t job) { return static_cast<JobId>(job + 1); }
  void Release(size_t job, Units keep, uint64_t launched);
  void Fenced(size_t job, uint64_t done);
  void Known(size_t job);
  Units LimitOf(size_t job) const;
  bool Deviates(size_t job) const;
  void PromoteFencedOut();
  Result<std::vector<Answered>> Decide(double now_ns);
  void Granted(const Request& request);
  void Refused(size_t job);
  // pool_moves.cc
  Insurance InsuranceOf(const Request& request) const;
  Extents WouldMove(const Job& job) const;
  void MoveAway(const Request& request);
  void BeginMove(size_t job, Move::Stage stage);
  void EndMoves();
  void BringBack(size_t job);
  std::vector<Request>::iterator RequestOf(size_t job);
  double NextMoveNs() const;
  double again_ns() const { return std::min({again_ns_, ballast_.next_ns(), NextMoveNs()}); }
  /// What the policy sees of those who ask.
  std::vector<Request> Seen() const;
  Outlook OutlookAt(double now_ns) const;
  /// Of the model's own making: an error is a bug in it, and the next Answer says so.
  void Must(const Status& status);
  void Log(Record record);
  void Log(EventKind event, size_t job);

  const Options& options_;
  const PolicyEntry* policy_;
  bool whole_;  // jobs have all that an iteration needs from its gate 0 on
  std::vector<Member> jobs_;
  std::map<JobId, Course> courses_;  // where the policy predicts
  Ledger ledger_;
  Ballast ballast_;
  std::vector<Request> requests_;
  std::vector<Request> fenced_out_;  // see WaitsForOwnFences
  std::vector<bool> asking_;
  std::vector<Move> moves_;
  std::vector<std::deque<Open>> open_;
  std::vector<uint64_t> iterations_;
  std::vector<uint32_t> most_overtaken_;
  std::vector<double> budget_since_ns_;
  ReleaseId next_release_ = 1;
  uint64_t next_ticket_ = 1;
  uint64_t decisions_ = 0;
  bool changed_ = false;
  Status broken_;
  double now_ns_ = 0;
  double asked_ns_ = 0;        // when the policy had nothing to decide
  double again_known_ns_ = 0;  // up to then again_ns_ is exact
  double again_ns_ = std::numeric_limits<double>::infinity();
  std::vector<Record> records_;
};

}  // namespace sluice::scheduler::simulate
