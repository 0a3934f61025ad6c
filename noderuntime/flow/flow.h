// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/byte_codec.h"
#include "common/status.h"
#include "noderuntime/flow/job.h"
#include "noderuntime/flow/types.h"
#include "noderuntime/session/declaration.h"
#include "noderuntime/session/frames.h"
#include "scheduler/ledger/ledger.h"
#include "scheduler/outside/outside.h"

namespace sluice::flow {

/// How soon Tick wants to be called again if nothing else happens.
enum class Urgency {
  kIdle,    // no job: only when something happens
  kTimers,  // somebody may have to be told something
  kPlaces,  // where somebody is in its iteration may tell whether another one may go on
  kFences,  // a fence is awaited by somebody who waits for memory
};

/// "array", "managed", ...: a family of memory outside the pool, for people and logs.
const char* FamilyName(uint32_t family);

/// Profiles in, grants and gates out: a thin shell round the pure scheduling library. It keeps the
/// ledger, feeds the profilers, asks the policy and says what was decided. Time is an argument, and
/// it touches nothing but the shared pages.
class Flow {
 public:
  Flow(const FlowOptions& options, FlowSink* sink);

  // flow_restore.cc: a daemon that takes over from one that died.
  /// Everything that the next daemon has to know, but what the clients say themselves.
  void Save(ByteWriter* out) const;
  /// The flow as it was. `pages` of the jobs whose sessions may go on. It decides nothing before
  /// Thaw; the log begins with what was there.
  static Result<std::unique_ptr<Flow>> Restore(const FlowOptions& options, FlowSink* sink,
                                               ByteReader* in,
                                               const std::map<JobId, JobPages>& pages,
                                               uint64_t now_ns);
  /// What the job's client really holds: the difference to what the last daemon knew goes back.
  /// An error: it declares what cannot be; nobody may use what it had before its last holder is
  /// gone.
  Status Resume(JobId job, const session::Declaration& declared, uint64_t now_ns);
  void Thaw(uint64_t now_ns);
  bool frozen() const { return frozen_; }
  /// Grows whenever something worth saving has changed.
  uint64_t changes() const { return changes_; }

  /// Whether a job with these terms could ever run beside those that were promised something.
  Status CheckRegistration(const JobSpec& spec) const;

  /// Other terms for a job, in whatever state: at once, or not at all. Without a session only what
  /// it left outside the pool counts, as its next one is told its limit by Start. `limit` 0: nobody
  /// gives one any more. kFailedPrecondition: the limit is below what the job has in the pool and
  /// outside, was promised or is known to need; names the least that is allowed.
  /// kResourceExhausted: the others or the budget leave no room for it (I0); names them.
  /// kInvalidArgument: none is given, where one is reserved.
  Status SetTerms(JobId job, Units limit, int32_t priority);

  /// The client's arena is mapped: the job wants to begin.
  void Start(const JobSpec& spec, const JobPages& pages, uint64_t now_ns);

  // Frames of a started job. An error is a breach of the protocol: close the session.
  Status OnLease(JobId job, const protocol::Lease& lease, uint64_t now_ns);
  Status OnGate(JobId job, const protocol::Gate& gate, uint64_t now_ns);
  Status OnRelease(JobId job, session::ReleaseFrame release, uint64_t now_ns);
  Status OnQuiet(JobId job, const protocol::Quiet& quiet, uint64_t now_ns);
  Status OnMismatch(JobId job, const protocol::Mismatch& mismatch, uint64_t now_ns);
  Status OnCharge(JobId job, const protocol::Charge& charge, uint64_t now_ns);
  Status OnUncharge(JobId job, const protocol::Uncharge& uncharge, uint64_t now_ns);
  Status OnCount(JobId job, const protocol::Count& count);

  /// The session is over; its pages are not touched again. True: memory waits for HolderGone.
  /// `parted`: by a goodbye, after which what is left on the account is the job's to give back.
  bool Die(JobId job, uint64_t now_ns, bool parted = false);
  /// Nothing but memory outside the pool is left of the job's last session: it may begin another
  /// one, and OnUncharge is heard meanwhile.
  bool Rests(JobId job) const;
  void HolderGone(JobId job, uint64_t now_ns);

  /// A copy that the sink began for the job has ended (FlowSink::MoveOut, MoveBack).
  void OnMoved(JobId job, const Status& how, uint64_t now_ns);

  /// Decides by another policy from here on, with other claims. What was granted and promised stays
  /// so, and what was waived stays waived up to the trough.
  /// `spatial`: kFailedPrecondition where a job has no limit or the limits do not fit together.
  Status SetWay(const Way& way, uint64_t now_ns);
  /// The daemon ends: whose memory is in host memory gets it back as soon as its place is free.
  void BringAllBack(uint64_t now_ns);
  /// In force. A soft budget is given up as soon as a job comes or goes, a profile is lost, a job
  /// needs more than fits, or the budget changes. It is no daemon's but this one's.
  Way way() const;
  /// The least soft budget in which each job with a profile can claim what it claims now, beside
  /// what the others keep.
  Units LeastSoftBudget() const;
  /// How often one was given up because what a job claims did not fit.
  uint64_t soft_budgets_outgrown() const { return soft_budgets_outgrown_; }
  std::string policy_name() const;
  /// Lends no more than `units` of the pool: at once where that is more than now; else as soon as
  /// those who are inside their iterations have come to their troughs, and nobody begins another
  /// one until then. kInvalidArgument: none, or more than the pool. kResourceExhausted: what a job
  /// was promised or is known to need does not fit; names it, and what would.
  Status SetBudget(Units units, uint64_t now_ns);
  Units budget() const;  // in force
  /// What was asked for last; other than budget() while that falls.
  Units wanted_budget() const { return options_.pool_units - beyond_; }
  /// Why that was given up; empty: it was not.
  const std::string& budget_refusal() const { return budget_refusal_; }
  /// Whether claims may fall: there is host memory for whoever leaves its own.
  bool EverybodyInsured() const;

  /// Everything that time brings: records, fences, notices, bounds.
  void Tick(uint64_t now_ns);
  /// The cheap part of it, for polling: fences, how far the jobs are where somebody waits for that,
  /// and what a policy put off until now.
  void PollFences(uint64_t now_ns);
  Urgency urgency() const;
  /// When PollFences may decide something although nothing has happened; 0: it will not.
  uint64_t again_at_ns() const { return again_at_ns_; }

  const FlowOptions& options() const { return options_; }
  const scheduler::Ledger& ledger() const { return ledger_; }
  const scheduler::OutsideAccount& outside() const { return outside_; }
  const std::vector<scheduler::Request>& requests() const { return requests_; }
  const FlowJob* Find(JobId job) const;
  /// The latest iteration of a job that was to be observed, as the text of a trace
  /// (data/traces/README.md). kFailedPrecondition: there is none; says why.
  Result<std::string> RecordingOf(JobId job, uint64_t now_ns);
  size_t fences_pending() const { return fences_pending_; }
  uint64_t decisions() const { return decisions_; }
  /// How often it was looked what there is to decide.
  uint64_t looks() const { return looks_; }
  /// For people: why the job waits; empty when it does not.
  std::string WhyWaiting(JobId job) const;
  /// The same in one word. Of a job that waits.
  scheduler::WaitReason WaitsBecause(JobId job) const { return WaitsBecause(RequestOf(job)); }

 private:
  using Request = scheduler::Request;
  using Ledger = scheduler::Ledger;

  static scheduler::ProfilerOptions ClientHash();
  FlowJob* Get(JobId job);
  Request* RequestOf(JobId job);
  const Request* RequestOf(JobId job) const;
  void DropRequest(JobId job);
  scheduler::Record RecordFor(scheduler::EventKind event, JobId job) const;
  void Log(scheduler::Record record);
  /// False: the ledger refuses what docs/design/impossible-states.md proves to be possible, so
  /// something about this job is not what it seems. Nothing was changed. Its session ends, and what
  /// it holds stays its own until its last holder is gone; the other jobs go on.
  bool Must(JobId job, const Status& done);
  void Leave(JobId id);

  // flow_memory.cc: releases and fences.
  static bool FenceReached(const FlowJob& job, PendingRelease* release);
  bool CollectFences(JobId id, FlowJob* job);
  bool CollectFences(JobId id, FlowJob* job, size_t most, size_t finished);
  bool PollFences(JobId id, FlowJob* job);
  void FinishRelease(JobId id, const PendingRelease& release);

  // flow_outside.cc: memory outside the pool.
  Status ChargeOutside(JobId id, const FlowJob& job, uint32_t family, uint64_t bytes);
  void LogOutside(JobId id, uint32_t family);
  Units OutsideUnits(JobId id, Units limit, uint64_t more_bytes) const;
  Units OutsideUnits(JobId id, const FlowJob& job, uint64_t more_bytes) const;

  // flow_decide.cc: from requests to answers.
  void Decide();
  bool ApplyDecision(const scheduler::Decision& decision);
  void AnswerGrant(JobId id, const Extents& extents);
  void AnswerDeny(JobId id, protocol::DenyCode code, const std::string& text);
  void Enqueue(JobId id, Request request);
  void HoldBack();
  void TryAdmit(JobId id);
  bool EverythingMeasured() const;
  Status WhyNotAdmitted(const JobSpec& spec) const;
  Status CheckGivenLimit(const JobSpec& spec) const;
  void AdmitWaiting();
  void Refuse(JobId id, const std::string& reason);
  void UpdateTerms();
  scheduler::WaitReason WaitsBecause(const Request* request) const;
  void LogWaits();
  void LogWait(JobId id, FlowJob* job, const Request* request);
  void LogRefusal(JobId id, scheduler::RefusalReason reason, Units units, const std::string& text);

  // flow_evict.cc: to host memory and back.
  void BeginEviction(JobId id);
  void BeginMove(JobId id, FlowJob* job);
  void Stay(JobId id, FlowJob* job, const std::string& why);
  void BeAway(JobId id, FlowJob* job);
  void BringBack(JobId id, const Extents& back);
  Status SameAsCopied(JobId id, const Extents& extents);
  void LogCopy(scheduler::EventKind event, JobId id, const Extents& extents, const Status& how);
  void GiveUpCopy(JobId id, const Status& why);
  bool SomebodyIsAway() const;
  Extents WouldMove(JobId id) const;
  void EndSlice(Request* request, uint64_t away_ns) const;
  void GiveUpMoves();
  scheduler::Insurance InsuranceOf(const Request& request, const FlowJob& job) const;

  // flow_timers.cc: what happens because time passes.
  void SendNotices();
  void DenyOverdue();
  void GiveUpHolders();
  void YieldToQuarantine();
  void SettleUnprofiled();
  void NoticeStandstill();
  void Settle(JobId id, FlowJob* job, const std::string& why);
  void SetQuiet(JobId id, bool quiet);
  void LogQuiet(const scheduler::Job& job);
  bool SomebodyWaitsToBegin(JobId but) const;
  bool WaitsForAMeasurement(JobId id) const;

  // flow_profile.cc: from records to profiles and gates.
  void ConsumeRings(size_t max_records);
  bool ReadRing(JobId id, FlowJob* job, size_t max_records);
  bool ConsumeRing(JobId id, FlowJob* job, size_t max_records);
  static scheduler::GateOptions GatesOf(const FlowJob& job);
  void PublishIfReady(JobId id, FlowJob* job);
  struct Deviation {
    scheduler::DeviationReason reason;
    const char* how;
  };
  static Deviation HowItLeft(uint32_t mismatch);
  void Withdraw(JobId id, FlowJob* job, const Deviation& deviation);
  void LoseProfile(JobId id, const Deviation& deviation);
  bool ArriveAtTrough(JobId id, FlowJob* job, const protocol::Gate& gate, bool drained);
  Request GateZero(JobId id, const FlowJob& job) const;
  static bool Careful(const FlowJob& job);
  static Units WithMargin(Units units, const FlowJob& job);
  static Units MostUsed(const FlowJob& job);
  Units ClaimFor(const FlowJob& job) const;

  // flow_collectives.cc: jobs whose kernels wait for other GPUs'.
  void NoteCollectives(JobId id, FlowJob* job);

  // flow_stitches.cc
  static void WantRun(Request* request, Units run, const JobSpec& spec);
  Status LeaseIfThere(JobId id, const Request& request);

  // flow_restore.cc
  void RestoreJob(ByteReader* in, const std::map<JobId, JobPages>& pages);
  void SettleProfile(JobId id, FlowJob* job);
  void LogRestored();
  void LogRelease(JobId id, scheduler::ReleaseId release, const Extents& extents);
  Status ResumeOutside(JobId id, FlowJob* job, const session::Declaration& declared);
  Status ReleaseUnread(JobId id, FlowJob* job, const Extents& extents,
                       const std::vector<protocol::FenceTerm>& fence);

  // flow_course.cc: what policies predict with, and what a job waives on its way.
  void LearnCourse(JobId id, FlowJob* job);
  bool FollowPlace(JobId id, FlowJob* job);
  void NotePlace(JobId id, FlowJob* job);
  Units WaivesAt(JobId id, const FlowJob& job, uint32_t gate) const;
  void Waive(JobId id, const FlowJob& job);
  bool Insured(JobId id) const;
  void SetClaims(scheduler::Claims claims);
  std::vector<Units> AheadFor(const Published& published) const;
  bool PlacesMatter() const;
  void PassGate(JobId id, uint32_t gate);
  void NoticeFences(JobId id);
  void EndCourse(JobId id);
  scheduler::Outlook OutlookNow() const;
  static constexpr double kLeastPauseNs = 500'000;  // between two looks at what was put off
  void RememberToAsk(double in_ns);

  // flow_policy.cc
  static constexpr uint32_t kEveryLane = 64;
  void Adopt(const std::string& policy, uint32_t lanes);
  Status LimitsFit() const;
  Units Reserved(const JobSpec& spec) const;
  void WithdrawAll();
  void ReserveOrTakeTurns();
  void LogPolicy(const std::string& why = "");
  uint64_t CreditOf(const scheduler::Profile& profile) const;
  bool HoldsWhole(const FlowJob& job) const;
  scheduler::CyclePlan ToldOf(scheduler::CyclePlan plan, bool whole) const;
  void TellAmounts();
  void Tell(FlowJob* job, bool whole);
  void GiveUpSoftBudget(const std::string& why);
  void Outgrow(JobId id);
  void FollowSoftBudget();

  // flow_budget.cc
  Units Lendable() const;
  bool BudgetFalls() const;
  bool BeginsLater(const Request& request) const;
  bool KeepsSomebodyAway(JobId id) const;
  Status BudgetFits(Units units) const;
  void FollowBudget();
  void PromiseBudget();
  void RaiseBudget();
  void GiveUpBudget(const std::string& why);
  void LogBudget(std::vector<scheduler::Record> records);

  // flow_terms.cc: limits and requests.
  bool MayYield(JobId id) const;
  Status TakesNothing(JobId id, Units limit) const;
  Status FitsBesideOthers(const FlowJob& job, const JobSpec& wanted) const;
  Result<Ledger> UnderTerms(const JobSpec& wanted) const;
  void GrowLimit(JobId id, Units more);
  void ReplaceLedger(Ledger next);
  void LogTerms(const scheduler::Job& old, const scheduler::Job& job);
  void PublishLimit(JobId id);

  FlowOptions options_;
  FlowSink* sink_;
  Ledger ledger_;
  scheduler::OutsideAccount outside_;
  std::map<JobId, FlowJob> jobs_;
  std::map<JobId, scheduler::Course> courses_;  // of jobs with a published profile
  std::vector<Request> requests_;
  /// Requests that the policy does not see yet: those that exceed their job's limit only until its
  /// own releases are fenced, which it would deny at once, and while the budget falls those to
  /// begin.
  std::vector<Request> held_back_;
  /// Since when the job is dead and its memory is not free. A daemon that takes over counts anew.
  std::map<JobId, uint64_t> dead_since_ns_;
  uint64_t now_ns_ = 0;
  uint64_t next_ticket_ = 1;
  uint64_t again_at_ns_ = 0;
  Units beyond_ = 0;  // of the pool, beyond the budget that was asked for
  uint64_t budget_since_ns_ = 0;
  std::string budget_refusal_;
  uint64_t soft_budgets_outgrown_ = 0;
  bool all_back_ = false;
  scheduler::SpareCursor spare_;
  size_t fences_pending_ = 0;
  uint64_t decisions_ = 0;
  uint64_t looks_ = 0;
  uint64_t changes_ = 0;
  bool frozen_ = false;
};

}  // namespace sluice::flow
