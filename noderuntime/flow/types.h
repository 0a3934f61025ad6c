// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "intercept/protocol/pages.h"
#include "scheduler/ledger/types.h"
#include "scheduler/policy/claims.h"
#include "scheduler/policy/patience.h"
#include "scheduler/policy/policy.h"
#include "scheduler/profile/gates.h"
#include "scheduler/record/record.h"

namespace sluice::flow {

using scheduler::Extents;
using scheduler::JobId;
using scheduler::Units;

/// Defects that a test can switch on, each to prove that a check would notice it. The daemon that
/// users run has no way to set them.
struct FaultPlan {
  bool ignore_fences = false;     // released units count as done at once
  bool skip_quarantine = false;   // a dead job's memory is free at once
  bool skip_quiet = false;        // who is evicted is not asked to stand still
  bool skip_copy_back = false;    // who was evicted goes on without what it had
  bool misnumber_fences = false;  // the ledger is asked for a release that it does not know
  bool release_moved = false;     // a job may give back what is copied
  bool skip_comparison = false;   // what is copied may be other units than the ledger's
};

/// A way of sharing, as far as it can be changed while jobs run.
struct Way {
  std::string policy;
  uint32_t lanes = 0;
  scheduler::Claims claims = scheduler::Claims::kContract;
  Units soft_budget = 0;  // scheduler::Config::soft_budget; 0: none
  uint32_t credit_parts = scheduler::kCreditParts;
  uint32_t residents = 0;  // scheduler::Config::residents, and slice_ns
  uint64_t slice_ns = scheduler::Config().slice_ns;

  bool operator==(const Way&) const = default;
};

struct FlowOptions {
  Units pool_units = 0;
  uint64_t unit_bytes = 0;
  uint64_t outside_bytes = 0;  // what the GPU has beside the pool
  uint64_t context_bytes = 0;  // what each context is charged for; 0: contexts are not charged
  scheduler::Config policy;    // its name may be `spatial`, too
  bool spatial = false;        // the flow's: that was its name
  /// What others may count on, of a job that is insured; of another one it is its contract.
  scheduler::Claims claims = scheduler::Claims::kContract;
  uint32_t claim_steps = 4;
  bool lend_eagerly = false;  // pressure is always on
  bool credit = true;
  uint64_t credit_ns = 0;                           // 0: by the profile
  uint32_t credit_parts = scheduler::kCreditParts;  // then: scheduler::CreditFor
  uint64_t lease_wait_ns = 30'000'000'000;          // bound for what nobody was promised
  uint64_t notice_after_ns = 1'000'000'000;
  scheduler::Patience patience;  // with a job without a profile, while somebody wants to begin
  FaultPlan faults;
};

/// What a launcher registered. 0 units: not given.
struct JobSpec {
  JobId id = scheduler::kNoJob;
  std::string name;
  Units limit = 0;
  Units request = 0;
  bool observed = false;  // an iteration of it is recorded
  int32_t priority = 0;   // higher goes first
  /// Its library puts scattered units side by side (docs/adr/0031).
  bool stitches = false;
};

/// The shared pages of a job's session, as the daemon maps them.
struct JobPages {
  const protocol::MarkPage* mark = nullptr;
  const protocol::ClientPage* client = nullptr;
  protocol::DaemonPage* daemon = nullptr;
};

struct GrantAnswer {
  uint32_t seq = 0;
  uint32_t gate = protocol::kNoGate;
  uint32_t profile = 0;
  uint64_t epoch = 0;
  Units claim = 0;
  bool high_end = false;
  Extents extents;
};

/// What a line for a program's stderr is about.
enum class About : uint8_t {
  kRecord,  // what the record before it says, in the same words
  kWait,    // that the job waits
  kElse,
};

struct Line {
  std::string text;
  About about = About::kElse;
  std::string_view reason = {};  // kWait: for what, in one word
};

/// Where the flow's decisions go. Calls come in the order that matters: whoever holds a unit is
/// published before a frame tells a client that it may use it.
class FlowSink {
 public:
  virtual ~FlowSink() = default;
  virtual void Grant(JobId job, const GrantAnswer& answer) = 0;
  virtual void Charged(JobId job, uint32_t seq, uint64_t outside_bytes) = 0;
  virtual void Deny(JobId job, uint32_t seq, protocol::DenyCode code, const std::string& text) = 0;
  virtual void Notice(JobId job, uint32_t seq, const Line& line) = 0;
  virtual void Log(const scheduler::Record& record) = 0;
  /// About the node as a whole, for people.
  virtual void Say(const std::string&) {}
  /// False: nobody reads the records, so the flow need not make those that cost much.
  virtual bool wants_log() const { return true; }
  /// `holder` kNoJob: nobody may touch these units any more, and nothing does.
  virtual void HolderChanged(const Extents& extents, JobId holder) = 0;

  // Host memory (I5). Copies run beside everything else; Flow::OnMoved is told how each has ended.
  /// There is room for so many more units, and the job's client knows how to stand still.
  virtual bool CanMove(JobId, Units) { return false; }
  /// Asks the client that waits for the answer to `seq` to stand still (Flow::OnQuiet).
  virtual void Quiesce(JobId, uint32_t) {}
  /// Begins to copy units out, which stay the job's until that has ended.
  virtual Status MoveOut(JobId, const Extents&) { return NoHostMemory(); }
  /// Begins to copy back all that was moved out, to the same units, which are the job's again.
  virtual Status MoveBack(JobId) { return NoHostMemory(); }
  /// What was copied of the job, or is, by the sink's own list: from MoveOut on, until DropMoved or
  /// until Flow::OnMoved was told that it is back.
  virtual Extents Copied(JobId) { return {}; }
  /// The job has ended. Returns when no copy of it is under way: its units are somebody else's
  /// next.
  virtual void DropMoved(JobId) {}
  /// What the job had is lost: its session has to end.
  virtual void EndSession(JobId, const std::string&) {}

 private:
  static Status NoHostMemory() {
    return Status(StatusCode::kFailedPrecondition, "there is no host memory to move to");
  }
};

}  // namespace sluice::flow
