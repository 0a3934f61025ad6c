// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "noderuntime/figures/histogram.h"
#include "scheduler/ledger/types.h"
#include "scheduler/loans/loans.h"
#include "scheduler/record/record.h"

namespace sluice::figures {

using scheduler::JobId;
using scheduler::Units;

/// Something that happened to a job and that its user may ask about later.
struct Event {
  uint64_t t_ns = 0;
  std::string kind;    // waited, refused, deviated, evicted, returned, told
  std::string reason;  // in one word (scheduler/record/reason.h); empty: there is none
  std::string text;    // the sentence that the program's stderr and the log got
};

/// What is counted of one job.
struct JobFigures {
  uint64_t iterations = 0;            // troughs reached
  Histogram gate_wait{kWaitBounds};   // at gates, those that opened at once included
  Histogram lease_wait{kWaitBounds};  // for leases between gates, likewise
  std::map<std::string, uint64_t, std::less<>> waits;     // by reason
  std::map<std::string, uint64_t, std::less<>> refusals;  // by reason
  uint64_t claim_raises = 0;
  uint64_t deviations = 0;                                     // it left its iteration
  uint64_t evictions = 0;                                      // it was moved to host memory
  std::map<std::string, uint64_t, std::less<>> deviations_by;  // reason
  std::map<std::string, uint64_t, std::less<>> evictions_by;   // reason of the wait that it ended
  uint64_t returns = 0;                                        // it came back from there
  uint64_t swaps = 0;        // it was moved there at its trough, by turns
  std::deque<Event> events;  // the latest, oldest first

  // Where it stands.
  uint64_t waits_since_ns = 0;  // 0: it does not wait
  Units claim = 0;              // 0: it has not begun
};

/// A job that is over, kept until its last counts have been read.
struct EndedJob {
  JobId id = scheduler::kNoJob;
  std::string name;
  uint64_t t_ns = 0;
  JobFigures figures;
};

/// The counters of one daemon, from the records of its event log: whatever is counted here can be
/// counted again from the log. Bounded by the number of jobs, however long it runs. A value: no
/// clock, the time is that of the records.
class Figures {
 public:
  static constexpr uint64_t kEndedForNs = 300'000'000'000;
  static constexpr size_t kMostEnded = 64;
  static constexpr size_t kMostEvents = 16;

  explicit Figures(Units pool_units) : loans_(pool_units) {}

  void Apply(const scheduler::Record& record);
  /// A line on the program's stderr of which Apply makes no event: that it waits, and for what, in
  /// one word, or something else (no word).
  void Told(JobId job, uint64_t t_ns, std::string_view waits_for, std::string_view text);
  /// `decisions` were made in `ns`.
  void Decided(uint64_t decisions, uint64_t ns);
  void Served(uint64_t ns) { service_.Add(ns); }
  /// The job is over.
  void End(JobId job, const std::string& name, uint64_t t_ns);
  /// Forgets who ended too long ago.
  void Prune(uint64_t now_ns);

  const JobFigures& Of(JobId job) const;  // zeros where nothing happened yet
  const std::deque<EndedJob>& ended() const { return ended_; }
  const scheduler::Loans& loans() const { return loans_; }
  uint64_t policy_switches() const { return policy_switches_; }
  const Histogram& decision() const { return decision_; }  // each, on average of those made at once
  const Histogram& service() const { return service_; }    // of leases that were answered at once
  const Histogram& handover() const { return handover_; }  // given back until the GPU was done
  const Histogram& reclaim() const { return reclaim_; }    // a death until its last holder was gone

 private:
  void Note(JobFigures* job, Event event);
  void Waited(JobFigures* job, uint64_t t_ns, Histogram* into);

  scheduler::Loans loans_;
  std::map<JobId, JobFigures> jobs_;
  std::deque<EndedJob> ended_;
  std::map<std::pair<JobId, scheduler::ReleaseId>, uint64_t> given_back_ns_;
  std::map<JobId, uint64_t> died_ns_;
  uint64_t policy_switches_ = 0;
  Histogram decision_{kDecisionBounds};
  Histogram service_{kServiceBounds};
  Histogram handover_{kHandoverBounds};
  Histogram reclaim_{kReclaimBounds};
};

}  // namespace sluice::figures
