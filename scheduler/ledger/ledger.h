// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "common/status.h"
#include "scheduler/ledger/pool_map.h"
#include "scheduler/ledger/types.h"

namespace sluice::scheduler {

/// What gate 0 was opened with; fixed until the next trough.
struct GateTerms {
  Units claim = 0;  // most the job may hold in this iteration
  Units piece =
      kWholeClaim;  // longest run it may ask for at once (its largest block in units, with margin)
  /// The client saw kPressure before this gate opened and will see it until its trough: it drains
  /// there and gives back all but its base. False: it may arrive there with everything it has, and
  /// counts in I3 as a job that gives nothing back.
  bool returns = true;
  End end = End::kLow;  // its lane
  /// The part of the claim that it will not need again before its trough, so that I3 need not count
  /// on it. 0 under a contract; grows along the demand curve where the job is insured (I5).
  Units waived = 0;

  /// Most it will hold from where it stands to its trough.
  Units ahead() const { return claim - waived; }
  friend bool operator==(const GateTerms&, const GateTerms&) = default;
};

struct Job {
  JobId id = kNoJob;
  std::string name;
  Phase phase = Phase::kWaiting;
  bool collective = false;  // its kernels wait for other GPUs'
  /// Its library puts scattered units side by side where there is no run (docs/adr/0031): any units
  /// do for what it asks for.
  bool stitches = false;
  Units request = 0;
  Units limit = 0;
  GateTerms terms;       // meaningful past the gate
  bool settled = false;  // unprofiled, and nobody waits for a profile any more
  bool drained = false;  // a base has been measured, and at the last trough the job was drained
  /// Past its gate, and it computes nothing: nobody has to stand still for it, or counts on it.
  bool quiet = false;
  Linger linger = Linger::kNot;  // dying
  Units leased = 0;
  Units unfenced = 0;
  Units spare = 0;
  Units quarantined = 0;
  /// What it has outside the pool that counts against its limit (scheduler/outside), rounded up.
  Units outside = 0;
  Units peak = 0;  // most it ever held
  /// Units that were held at the last two drained troughs. Only what lies outside counts as given
  /// back at the next one: a tensor that is replaced in each iteration alternates between two
  /// places.
  Extents base;
  Extents last_trough;  // units held at the last drained trough alone
  /// What it holds outside its base, whatever the state: what its next drained trough gives back.
  /// Kept, so that I3 does not look for it in all that is held.
  Extents loose;
  /// Of its base, what it does not hold now: what it may keep again at its trough, if it is granted
  /// it. Kept as `loose` is.
  Extents missing;
  /// Evicted: what is in host memory and comes back to these very units, as the program has their
  /// addresses: what it had outside its base, or all that it had at its trough.
  Extents away;
  Phase away_from = Phase::kRunning;  // evicted: where it was, and is when it has come back
  /// Which of those that were in host memory at their troughs came back when: a larger one later.
  /// 0: it never was, or nobody knows (a snapshot does not say).
  uint32_t came_back = 0;
  bool fresh = false;  // it came back so, and has not begun an iteration since
  bool stays = false;  // at its last trough it could not be moved

  Units held() const { return leased + unfenced + spare + quarantined; }
  /// Where nothing is known of what it will ask for.
  Units unknown_piece() const { return stitches ? 1 : kWholeClaim; }
  bool past_gate() const { return phase == Phase::kRunning || phase == Phase::kUnprofiled; }
  /// Its memory is expected to change, and it to come to a trough.
  bool under_way() const { return past_gate() && !settled && !quiet; }
  /// With what it cannot do without: what comes back to it.
  uint64_t needs() const { return uint64_t{held()} + TotalUnits(away); }
  /// "job 2 'b'"
  std::string Title() const;
  friend bool operator==(const Job&, const Job&) = default;
};

/// The truth about one pool. A value: copy it, try an operation on the copy, look. Every operation
/// either succeeds or leaves the ledger as it was and says precisely why not. It enforces I0, I1,
/// h <= C <= L and h + outside <= L; whether an operation is *safe* (I3) is asked of
/// scheduler/safety before it is made.
///
/// Errors: kNotFound, no such job or release; kFailedPrecondition, the job's phase or holdings do
/// not allow it; kInvalidArgument, amounts or extents that nobody may ask for; kResourceExhausted,
/// I0 or the claim has no room. Texts name the job, and for I0 all holders.
class Ledger {
 public:
  /// `unit_bytes` is used in texts only.
  Ledger(Units pool_units, uint64_t unit_bytes, Rules rules = {});

  /// A ledger in the given state (snapshot.h). An error when it breaks an invariant.
  static Result<Ledger> Restore(Units pool_units, uint64_t unit_bytes, Rules rules,
                                const std::vector<Span>& spans, std::vector<Job> jobs);

  // registration
  /// I0, or a refusal that names the holders. The job is waiting afterwards.
  Status Admit(JobId job, std::string name, Units request, Units limit);
  /// What Admit would take: the largest limit I0 allows a (new) job with this request. 0: not even
  /// the request fits.
  Units LargestLimit(JobId job, Units request) const;
  /// I0 again. A limit falls only to what the job has and claims (LeastLimitOf); the claim of one
  /// without a profile falls with it.
  Status SetLimit(JobId job, Units limit);
  Status SetRequest(JobId job, Units request);
  /// What the job has outside the pool now. More than before only where its limit has room for it
  /// and for what it holds.
  Status SetOutside(JobId job, Units outside);

  // the way past the gate
  Status StartUnprofiled(JobId job);  // waiting or parked; claim = limit, gives nothing back
  /// Unprofiled, and nobody waits for its profile any more: it is taken to hold up to `limit` for
  /// good, so its request becomes its limit (I0 is asked) and its claim falls with it.
  Status Settle(JobId job, Units limit);
  /// Past its gate: whether it computes nothing at the moment. Its claim stays what it is.
  Status SetQuiet(JobId job, bool quiet);
  /// Its kernels wait for other GPUs', whose daemons may keep waiting whom it waits for: where
  /// there is room for all it takes no turns (MayHold).
  Status SetCollective(JobId job);
  Status SetStays(JobId job, bool stays);              // parked: whether it cannot be moved
  Status SetStitches(JobId job, bool stitches);        // waiting: of the session that begins
  Status OpenGate(JobId job, const GateTerms& terms);  // parked -> running
  Status RaiseClaim(JobId job, Units claim);  // past its gate, up to its limit; waives none
  /// Running, up to its claim. Less than before is a new promise: I3 is asked first.
  Status Waive(JobId job, Units units);
  Status LoseProfile(JobId job);  // running -> unprofiled; keeps its claim
  /// Back at the trough (also an unprofiled job that has a profile by now). Its spare units become
  /// free. `drained`: every mark reached, everything wholly free released. Then nothing may be
  /// unfenced (its fences are all reached: call Fenced first) and the base is what it holds. Else
  /// it keeps all it has leased, and a job whose terms say `returns` must have released all but its
  /// base: what is not fenced yet comes back by itself.
  Status ReachTrough(JobId job, bool drained);

  // host memory: who left its claim makes room for those who did not (I5), and who waits at its
  // trough for those whose turn it is (docs/adr/0036)
  /// Past its gate -> evicted; its spare units and all that it has leased outside its base become
  /// free. At its trough -> evicted; all that it has becomes free. It computes nothing,
  /// what it has is copied, and nothing of it may be unfenced.
  Status Evict(JobId job);
  /// Evicted -> where it was. What it had is its own again and has to be free. `terms`: of its
  /// iteration; at its trough it has none.
  Status BringBack(JobId job, const GateTerms& terms);

  // memory
  Status Grant(JobId job,
               const Extents& extents);  // free, or the job's own spare; held stays <= claim
  Status Release(JobId job, const Extents& extents, ReleaseId release);  // leased -> unfenced
  Status Fenced(JobId job, ReleaseId release);        // unfenced -> spare (free when parked)
  Status Reclaim(JobId job, const Extents& extents);  // spare -> free

  // the end
  Status Die(JobId job);  // everything it holds -> quarantined
  Status SetLinger(JobId job, Linger linger);
  Status LastHolderGone(JobId job);  // quarantined -> free; the job is removed
  Status Leave(JobId job);           // a job that holds nothing but spare units is removed

  // questions
  Units pool_units() const { return map_.units(); }
  uint64_t unit_bytes() const { return unit_bytes_; }
  const Rules& rules() const { return rules_; }
  const PoolMap& map() const { return map_; }
  Units free() const { return map_.free(); }
  Units held(JobId job) const;                            // 0 for a job it does not know
  const std::vector<Job>& jobs() const { return jobs_; }  // by id
  /// nullptr: unknown. Valid until the next operation that adds or removes a job.
  const Job* Find(JobId job) const;

  /// "24.0 MiB" for a number of units.
  std::string Bytes(Units units) const;
  /// "job 1 'a' holds 12.0 MiB (limit 40.0 MiB), job 2 ..." of all but `except`, largest first.
  std::string Holders(JobId except = kNoJob) const;

  /// I0, I1, h <= C <= L, that a parked, drained job holds nothing outside its base, and the
  /// counters against the map. For tests. (I2, base within request, is the job's to keep.)
  Status CheckInvariants() const;
  friend bool operator==(const Ledger& a, const Ledger& b) {
    return a.map_ == b.map_ && a.jobs_ == b.jobs_;
  }

 private:
  Job* FindMutable(JobId job);
  Result<Job*> Expect(JobId job, std::initializer_list<Phase> phases, const char* operation);
  Status CheckAdmission(JobId job, const std::string& who, Units request, Units limit) const;
  /// Each extent in `state` of `holder`, none twice.
  Status CheckExtents(const Extents& extents, UnitState state, const Job& job,
                      const char* operation) const;
  void Move(Job* job, const Extents& extents, UnitState to, ReleaseId release);
  void Remove(JobId job);

  PoolMap map_;
  uint64_t unit_bytes_;
  Rules rules_;
  std::vector<Job> jobs_;
};

}  // namespace sluice::scheduler
