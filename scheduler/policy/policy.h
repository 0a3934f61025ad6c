// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "scheduler/ledger/ledger.h"
#include "scheduler/policy/course.h"
#include "scheduler/record/record.h"

/// Who is granted what, and who waits. Which policies there are, and what each is after, stands in
/// policies.h. That nobody ends up waiting for ever is no business of a policy: every decision is
/// put to scheduler/safety.
namespace sluice::scheduler {

enum class RequestKind : uint8_t {
  kNewcomer,   // a waiting job wants to begin without a profile (units may be 0)
  kGate0,      // a parked job wants to open its gate
  kGate,       // a running job stands at gate k and wants `units` more
  kLease,      // a job past its gate wants `units` more
  kBringBack,  // an evicted job wants back what it had, with a claim for `units` more
  kSwapIn,     // one that was at its trough wants its base back, and then to open its gate
};

/// What can be done about a request of a job past its gate that left its claim, where nothing can
/// come back by itself (I5).
enum class Insurance : uint8_t {
  kNone,       // it is told that memory is exhausted
  kEvictable,  // host memory has room for what it has outside its base, and it can be made quiet
  kLeaving,    // it is being made quiet, or copied: it gets no answer before that has ended
};

struct Request {
  JobId job = kNoJob;
  RequestKind kind = RequestKind::kLease;
  uint32_t gate = 0;
  Units units =
      0;  // wanted in addition to what the job holds (its spare units not counted as held)
  Units contiguous = 0;       // at least one run of this many
  Units prefers = 0;          // a run of this many is looked for first; 0: of `contiguous`
  Units claim = 0;            // kGate0: the claim for the coming iteration
  Units waives = 0;           // kGate: the part of its claim that it will not need again (I5)
  Units piece = kWholeClaim;  // kGate0: the longest run it will ask for
  bool returns = true;        // kGate0: see GateTerms::returns
  uint64_t ticket = 0;        // by arrival; a request keeps it while it waits
  Insurance insurance = Insurance::kNone;
  int32_t priority = 0;  // the job's; higher goes first
  double served_ns = 0;  // kGate0: GPU time that the job has had, over its weight
  bool due = false;      // kSwapIn: it has been in host memory for its slice
  uint32_t overtaken =
      0;  // gates 0 and newcomers that were let in before it although they came later
};

/// It has begun, and asks for more.
inline bool AsksPastGate(const Request& request) {
  return request.kind == RequestKind::kGate || request.kind == RequestKind::kLease;
}

/// What it had is in host memory.
inline bool ComesBack(const Request& request) {
  return request.kind == RequestKind::kBringBack || request.kind == RequestKind::kSwapIn;
}

/// Whose turn it is among those who wait to begin an iteration, where priorities are equal.
enum class Turns : uint8_t {
  kByTicket,   // who came first: as many iterations for everybody
  kByService,  // who has had the least GPU time: as much of the GPU for everybody
};

struct Config {
  std::string policy = "flow";
  uint32_t lanes = 2;  // jobs past their gate at the same time; temporal: 1
  uint32_t max_overtakes = 4;
  /// An iteration begins when the GPU has done so much, as a part of 1, of the one that began last
  /// (phase.cc). 0: as soon as it may.
  double phase = 0;
  Turns turns = Turns::kByTicket;
  uint32_t budget_steps = 4;  // timeshift: iterations until all of the pool is counted on
  uint32_t groups_per_peak =
      kGroupsPerPeak;  // nodegroup: a group takes or gives about this part of the peak
  /// Where more jobs than these have a profile, the bases of the others are in host memory while
  /// they wait (host_memory.h). 0: all bases stay.
  uint32_t residents = 0;
  uint64_t slice_ns = 1'000'000'000;  // that a base is in host memory
  Units soft_budget = 0;  // gates open as if no more were lent (soft_budget.h); 0: the pool
};

enum class DenyCode : uint8_t { kOverLimit, kExhausted, kRefused };

struct Decision {
  enum class Kind : uint8_t {
    kGrant,    // requests[request] is answered: gate opened or newcomer started, claim raised,
               // extents granted
    kDeny,     // requests[request] is answered: no, and why
    kReclaim,  // answers nobody: spare units of `job` become free
    kEvict,    // answers nobody: requests[request] is kLeaving from now on. When its job stands
             // still and is copied it is evicted (Ledger::Evict), and asks for kBringBack. Granted
             // that, and copied back, it asks anew for what it waited for: it was promised it
  };
  Kind kind = Kind::kGrant;
  size_t request = 0;
  JobId job = kNoJob;
  Extents reclaim;  // spare units of the job that become free, before the rest is applied
  Extents extents;  // granted
  GateTerms terms;  // gate 0, newcomer: the terms; else only claim and waived, after the grant
  bool raises_claim = false;
  /// The job is alone past its gate and its claim fits in number but not in runs: it may meet its
  /// own fragmentation.
  bool sums_only = false;
  DenyCode code = DenyCode::kExhausted;
  std::string reason;  // one line for a person, names the holders
};

/// When a policy that put a request off may say something else although nothing has happened.
struct AskAgain {
  double within = 0;  // exact up to here, in ns: whoever looks again before then need not know
  double in = std::numeric_limits<double>::infinity();  // ns from now; infinity: never
};

/// Where to go on among the spare runs. A trial looks at all pieces of the pool. Of a job with many
/// runs that may not become free Next tries some, as many as its budget of pieces allows, and goes
/// on behind them in a later call. It tries all of all jobs before it denies what nobody could do
/// anything about. A hint: any value is right.
struct SpareCursor {
  /// A job's budget: so many pieces at once, and so many more in each tick.
  static constexpr int64_t kPieces = 4096;
  static constexpr int64_t kPiecesInATick = 1024;

  struct Place {
    bool begun = false;             // all of its runs together were tried
    Units offset = 0;               // the next run is the first at or behind it
    size_t together = kWholeClaim;  // so many runs, the next time
    int64_t pieces = kPieces;       // what is left of the budget; below 0 it was overdrawn
  };

  void Tick();

  std::map<JobId, Place> places;
};

/// The next single decision, or nothing. The caller applies it (Apply), removes an answered request
/// and asks again. `requests` holds at most one request per job, in any order. Deterministic: ties
/// go to the lower ticket. Decision::request is an index into this very list: removing a request
/// makes it stale.
/// `outlook`: what is predicted of the jobs; policies that predict take turns with whom nothing is
/// known of. `again`, where it is not null: `in` falls to what was learned on the way. It holds
/// where nothing was decided. `spare`: whoever decides the same again soon; nullptr: each call
/// tries everything.
std::optional<Decision> Next(const Ledger& ledger, const std::vector<Request>& requests,
                             const Config& config, const Outlook& outlook = {},
                             AskAgain* again = nullptr, SpareCursor* spare = nullptr);

/// For whoever asks later, about the state that it was: nanoseconds after which Next may decide
/// something although nothing has happened; infinity: it will not. 0 is never the answer where Next
/// had none. Exact up to `within`; where it is more the answer may be less, and is no less than
/// `within`: whoever looks again before then anyway need not know, and to know is what costs.
double AskAgainIn(const Ledger& ledger, const std::vector<Request>& requests, const Config& config,
                  const Outlook& outlook, double within = std::numeric_limits<double>::infinity());

/// Makes the decision's ledger operations. An error is a bug in the caller (a stale decision): the
/// ledger is unchanged.
Status Apply(const Decision& decision, const std::vector<Request>& requests, Ledger* ledger);

/// The records of a decision, in order: one, as the ledger takes no step in between (t_ns and
/// iteration are the caller's). Call it before Apply: it reads the ledger that the decision was
/// made on.
std::vector<Record> RecordsOf(const Decision& decision, const std::vector<Request>& requests,
                              const Ledger& ledger);

/// Nobody begins an iteration while another job is inside one, but where nothing moves any more,
/// and but for jobs with collective operations.
bool TakesTurns(const Config& config);

/// After a grant to a gate 0 or newcomer: one more overtake for every other request with a lower
/// ticket.
void CountOvertaken(const Decision& decision, std::vector<Request>* requests);

/// Only what its own GPU has not passed yet keeps the request above its job's limit: that comes
/// back by itself, so the request is put to Next() when it has.
bool WaitsForOwnFences(const Ledger& ledger, const Request& request);

/// Whether I3 covers the request of a job past its gate: more than its claim needs a claim raise, a
/// longer run meets the job's own fragmentation.
bool Promised(const Ledger& ledger, const Request& request);

/// The same, were nothing of the claim waived: such a request waits as long as it takes. To have
/// waived something is no reason to be told after a while.
bool InsideClaim(const Ledger& ledger, const Request& request);

/// Whether `job` has to give back what it does not need and to drain at its trough (kPressure).
bool PressureOn(const Ledger& ledger, JobId job, bool eager);

/// Why a request waits, in one word. What it says of turns and memory is a reading of the state,
/// not the decision's own path: several may hold at once, and the first of them stands here.
WaitReason ReasonOf(const Ledger& ledger, const Request& request, const Config& config);

/// Why a request waits: one line that names the holders.
std::string WhyWaiting(const Ledger& ledger, const Request& request, const Config& config);

}  // namespace sluice::scheduler
