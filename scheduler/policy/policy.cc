// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/policy/policy.h"

#include <algorithm>
#include <numeric>

#include "scheduler/place/place.h"
#include "scheduler/policy/host_memory.h"
#include "scheduler/policy/operations.h"
#include "scheduler/policy/policies.h"
#include "scheduler/policy/reclaim.h"
#include "scheduler/policy/soft_budget.h"
#include "scheduler/safety/safety.h"

namespace sluice::scheduler {

namespace {

constexpr size_t kMaxPlacements = 16;  // tried per request; each costs a search for an order
/// And that costs the pieces of the pool: in one of more pieces than pools come to fewer are tried,
/// as long as anything moves.
constexpr size_t kMaxPieces = kMaxPlacements * 256;

/// One round of decisions about a fixed ledger.
class Round {
 public:
  Round(const Ledger& ledger, const std::vector<Request>& requests, const Config& config,
        const Outlook& outlook, AskAgain* again, SpareCursor* spare)
      : ledger_(ledger),
        requests_(requests),
        config_(config),
        outlook_(outlook),
        again_(again),
        spare_(spare),
        placements_(
            std::clamp<size_t>(kMaxPieces / (ledger.map().spans().size() + 1), 1, kMaxPlacements)),
        policy_(FindPolicy(config.policy)) {
    by_ticket_.resize(requests.size());
    std::iota(by_ticket_.begin(), by_ticket_.end(), size_t{0});
    std::sort(by_ticket_.begin(), by_ticket_.end(),
              [this](size_t a, size_t b) { return Before(a, b); });
  }

  /// The order is the policy. Units that can become free do so first, so that whatever follows sees
  /// them. Hopeless requests are answered before they can keep others waiting. Jobs past their gate
  /// come before gates 0: they hold memory that comes back only when they go on.
  std::optional<Decision> Decide() const {
    if (auto decision = Reclaim(ledger_, spare_, &spare_left_)) return decision;
    for (const size_t i : by_ticket_) {
      if (auto decision = DenyAtOnce(i)) return decision;
    }
    for (const size_t i : by_ticket_) {
      const Request& request = requests_[i];
      if (!Grantable(request)) continue;
      const bool asks =
          policy_ != nullptr && policy_->may_pass != nullptr;  // it looks at all others
      if (asks && HopelessInSums(*ledger_.Find(request.job), request)) continue;
      if (!MayPassGate(request)) continue;
      if (auto decision = TryGrant(i, Pieces::kWhole)) return decision;
    }
    if (const auto leaves = WhoLeaves(ledger_, requests_, config_)) return Evict(*leaves);
    if (auto decision = OpenGates()) return decision;
    if (SomethingMoves(Rest::kForNow)) return std::nullopt;
    // Whatever was put off is tried before somebody is told that there is nothing.
    if (spare_left_ && !SomethingMoves(Rest::kForGood)) {
      if (auto decision = Reclaim(ledger_, nullptr, &spare_left_)) return decision;
    }
    placements_ = kMaxPlacements;
    // A policy holds nobody back where there is nothing to wait for.
    for (const size_t i : by_ticket_) {
      if (!Grantable(requests_[i]) || MayPassGate(requests_[i])) continue;
      if (auto decision = TryGrant(i, Pieces::kWhole)) return decision;
    }
    // Scattered memory that the job's blocks may not fill still counts against its claim: not
    // before there is nothing better to wait for.
    for (const size_t i : by_ticket_) {
      if (!Grantable(requests_[i])) continue;
      if (auto decision = TryGrant(i, Pieces::kAny)) return decision;
    }
    const bool hopeless = !SomethingMoves(Rest::kForGood);
    if (!hopeless || !Overdue()) {
      if (auto decision = OpenAtRest()) return decision;
    }
    return hopeless ? DenyAtRest() : std::nullopt;
  }

 private:
  /// The order in which requests are looked at: jobs past their gate first; whoever was overtaken
  /// often enough, then by priority, by turns (of those who want to begin) and by ticket.
  bool Before(size_t a, size_t b) const {
    const Request& first = requests_[a];
    const Request& second = requests_[b];
    const bool inside = AsksPastGate(first);
    if (inside != AsksPastGate(second)) return inside;
    const bool overdue = IsOverdue(first);
    if (overdue != IsOverdue(second)) return overdue;
    if (!overdue && first.priority != second.priority) return first.priority > second.priority;
    const bool by_service = !overdue && !inside && config_.turns == Turns::kByService;
    if (by_service && first.served_ns != second.served_ns)
      return first.served_ns < second.served_ns;
    return std::pair(first.ticket, a) < std::pair(second.ticket, b);
  }

  bool IsOverdue(const Request& request) const {
    return scheduler::Overdue(ledger_, request, requests_, config_);
  }

  /// A job that is being evicted stands still until that has ended.
  static bool Grantable(const Request& request) {
    return AsksPastGate(request) && request.insurance != Insurance::kLeaving;
  }

  /// Worked out when somebody asks: in most rounds nobody's turn has come.
  const Sums& InSums() const { return sums_ ? *sums_ : sums_.emplace(ledger_); }

  Asked About(const Request& request) const {
    return {ledger_, requests_, request, config_, outlook_, forecast_};
  }

  bool MayPassGate(const Request& request) const {
    if (request.kind != RequestKind::kGate || policy_ == nullptr) return true;
    if (policy_->may_pass != nullptr && !policy_->may_pass(About(request))) return false;
    return FitsSoftBudget(About(request));
  }

  // where memory can be had
  Extents SpareOf(const Job& job) const {
    return job.spare == 0 ? Extents() : ledger_.map().Held(job.id, UnitState::kSpare);
  }

  // jobs past their gate

  std::optional<Decision> DenyAtOnce(size_t i) const {
    const Request& request = requests_[i];
    const Job* job = ledger_.Find(request.job);
    if (job == nullptr) return Deny(i, DenyCode::kRefused, "the job is not registered");
    const Phase needed = request.kind == RequestKind::kNewcomer ? Phase::kWaiting
                         : ComesBack(request)                   ? Phase::kEvicted
                                                                : Phase::kParked;
    if (AsksPastGate(request) ? !job->past_gate() : job->phase != needed) {
      return Deny(i, DenyCode::kRefused,
                  job->Title() + " is " + PhaseName(job->phase) + " and cannot ask for this");
    }
    // Of who is away, or on its way, it is asked when it is back: it may have got more outside the
    // pool meanwhile, and all that it had would be lost.
    const bool waits = ComesBack(request) || request.insurance == Insurance::kLeaving;
    if (waits || HeldAfter(*job, request) + job->outside <= job->limit) return std::nullopt;
    return Deny(
        i, DenyCode::kOverLimit,
        job->Title() + " asks for " + ledger_.Bytes(request.units) + ", holds " +
            ledger_.Bytes(job->held() - job->spare) +
            (job->outside > 0 ? " and " + ledger_.Bytes(job->outside) + " outside the pool" : "") +
            ", and its limit is " + ledger_.Bytes(job->limit));
  }

  std::optional<Decision> TryGrant(size_t i, Pieces pieces) const {
    const Request& request = requests_[i];
    const Job& job = *ledger_.Find(request.job);
    if (HopelessInSums(job, request)) return std::nullopt;
    const Extents spare = SpareOf(job);
    if (!spare.empty() && pieces == Pieces::kWhole && !SomebodyIsAway()) {
      const auto at = PlaceOnSpare(ledger_.map(), job.id, job.terms.end, request.units,
                                   std::max(request.contiguous, request.prefers));
      if (auto decision = at ? TryGrantAt(i, job, *at, spare) : std::nullopt) return decision;
    }
    Extents both;
    const uint64_t most = uint64_t{job.terms.claim} + job.spare;
    return FirstPlace(FreeAnd(spare, ledger_.map(), &both), job, request,
                      {request.units, most, job.terms.end, UnitState::kLeased, pieces},
                      [&](const Extents& at) { return TryGrantAt(i, job, at, spare); });
  }

  struct Wanted {
    Units units;
    uint64_t most;  // that it may come to hold in its iteration
    End end;
    std::optional<UnitState> beside;  // of the job's own: near these
    Pieces pieces;
  };

  /// What `decide` makes of the first place that it can make something of. What those who are away
  /// have to come back to is spared.
  template <class Decide>
  std::optional<Decision> FirstPlace(const Extents& runs, const Job& job, const Request& request,
                                     const Wanted& wanted, const Decide& decide) const {
    if (wanted.units == 0) return decide(Extents());
    Extents places;
    for (const Job& other : ledger_.jobs()) {
      if (!other.away.empty()) places = Union(places, other.away);
    }
    if (!places.empty()) {
      uint32_t turn = 0;
      for (const Request& one : requests_) {
        if (one.kind == RequestKind::kBringBack) turn = std::max(turn, one.overtaken);
      }
      // A gate counts as it opens: by twos, so that whole iterations go the same way.
      const Extents first = Sparing(
          runs, places, wanted.most - std::min<uint64_t>(wanted.most, job.held()), turn / 2);
      if (auto decision = FirstPlaceIn(first, job, request, wanted, decide)) return decision;
    }
    return FirstPlaceIn(runs, job, request, wanted, decide);
  }

  template <class Decide>
  std::optional<Decision> FirstPlaceIn(const Extents& runs, const Job& job, const Request& request,
                                       const Wanted& wanted, const Decide& decide) const {
    const Units least = std::min(request.contiguous, wanted.units);
    const Units best = std::max(least, std::min(request.prefers, wanted.units));
    const Extents near = HeldBeside(ledger_.map(), runs, wanted.units, job.id, wanted.beside);
    for (const Units run : {best, least}) {
      // The first place is nearly always the right one.
      size_t tried = 0;
      for (const size_t most : {size_t{1}, placements_}) {
        const std::vector<Extents> places =
            PlaceCandidates(runs, wanted.end, wanted.units, run, near, most, wanted.pieces);
        for (; tried < places.size(); ++tried) {
          if (auto decision = decide(places[tried])) return decision;
        }
      }
      if (run == least) break;
    }
    return std::nullopt;
  }

  /// Whatever is placed where: not enough is there, or the grant would break I3 in numbers. With
  /// its spare units counted as free, the best that can happen.
  bool HopelessInSums(const Job& job, const Request& request) const {
    if (request.units > uint64_t{ledger_.free()} + job.spare) return true;
    const Rules& rules = ledger_.rules();
    // While somebody is stuck already, others may go on (NoWorse), and only a trial tells.
    if (!rules.check_safety || !rules.check_raise || !InSums().safe()) return false;
    const uint64_t held = HeldAfter(job, request);
    const uint64_t ahead =
        held > job.terms.claim ? held : job.terms.claim - WaivedAfter(job, request);
    return !InSums().SafeWith(job.id, held, ahead,
                              job.phase == Phase::kRunning && job.terms.returns);
  }

  std::optional<Decision> TryGrantAt(size_t i, const Job& job, const Extents& extents,
                                     const Extents& spare) const {
    const uint64_t held_after = HeldAfter(job, requests_[i]);
    const bool raises = held_after > job.terms.claim;
    // The spare units that are of no use to this request become free with it, or, where the others
    // would be worse off, stay with the job if its claim has room for both.
    const Extents unused = Subtract(spare, extents);
    for (const bool free_unused : {true, false}) {
      if (free_unused && unused.empty()) continue;
      // A raised claim is exactly what the job holds then: it has no room for spare units beside.
      if (raises && !free_unused && !unused.empty()) continue;
      Decision decision;
      decision.kind = Decision::Kind::kGrant;
      decision.request = i;
      decision.job = job.id;
      decision.extents = extents;
      if (free_unused) decision.reclaim = unused;
      decision.terms = job.terms;
      decision.raises_claim = raises;
      decision.terms.waived = raises ? 0 : WaivedAfter(job, requests_[i]);
      if (raises) decision.terms.claim = static_cast<Units>(held_after);
      const auto change = ChangeOf(decision, requests_, ledger_);
      if (!change) continue;
      const Rules& rules = ledger_.rules();
      const bool ask = rules.check_safety && (!raises || rules.check_raise);
      if (!ask || NoWorse(ledger_, {ledger_, *change})) return decision;
    }
    return std::nullopt;
  }

  // gates 0 and newcomers

  std::optional<Decision> OpenGates() const {
    if (auto decision = OpenByTicket()) return decision;
    if (Overdue()) return std::nullopt;
    // Behind those whose turn it is, which would else wait for ever to begin.
    for (const size_t i : by_ticket_) {
      if (!WaitsForNobody(requests_[i])) continue;
      if (auto decision = TryOpen(i, Measure::kExtents, Pieces::kWhole)) return decision;
    }
    return std::nullopt;
  }

  std::optional<Decision> OpenByTicket() const {
    for (const Request& request : requests_) {
      if (AsksPastGate(request) && HoldsGatesShut(request)) return std::nullopt;
    }
    for (const size_t i : by_ticket_) {
      if (AsksPastGate(requests_[i])) continue;
      if (auto decision = TryOpen(i, Measure::kExtents, Pieces::kWhole)) return decision;
      // It is its turn, nobody is inside, and only where the bases lie keeps it out (OpenAtRest):
      // nothing that the others could give back would change that.
      if (!SomebodyToReturn() && !SomethingMoves(Rest::kForNow)) {
        if (auto decision = TryOpen(i, Measure::kSums, Pieces::kAny)) return decision;
      }
      // Nobody passes this one any more: what the others give back is collected until it can open.
      if (IsOverdue(requests_[i])) return std::nullopt;
    }
    return std::nullopt;
  }

  /// A job that waited here for another one's turn could keep that one waiting on another GPU.
  /// Where all may hold all they ever may it waits for nobody, and takes up no lane (Occupants). A
  /// newcomer that was overtaken often enough counts, though it has not begun.
  bool WaitsForNobody(const Request& request) const {
    if (request.kind != RequestKind::kGate0 || !ledger_.Find(request.job)->collective) return false;
    uint64_t most = MayHold(ledger_);
    for (const Request& other : requests_) {
      if (other.kind == RequestKind::kNewcomer && IsOverdue(other))
        most += ledger_.Find(other.job)->limit;
    }
    return most <= ledger_.pool_units();
  }

  /// An evicted job stands in the middle of its iteration, of which policies predict nothing.
  bool MayOpen(const Request& request) const {
    if (request.insurance == Insurance::kLeaving) return false;
    if (request.kind == RequestKind::kSwapIn)
      return MayComeBack(ledger_, request, requests_, config_);
    if (WaitsForNobody(request)) return true;
    if (request.kind != RequestKind::kBringBack) {
      const Asked asked = About(request);
      if (!InPhase(asked) && SomethingMoves(Rest::kForNow)) return false;
      return PolicyOpens(asked) && (request.kind != RequestKind::kGate0 || FitsSoftBudget(asked));
    }
    return Occupants(ledger_, request.job) < (TakesTurns(config_) ? 1 : config_.lanes);
  }

  bool PolicyOpens(const Asked& asked) const {
    if (policy_->opens_in == nullptr || Occupants(ledger_, asked.request.job) == 0)
      return policy_->may_open(asked);
    const double in = policy_->opens_in(asked, again_ == nullptr ? 0 : again_->within);
    if (in > 0 && again_ != nullptr) again_->in = std::min(again_->in, in);
    return in <= 0;
  }

  /// A job past its gate waits, and a further gate would only take away what it waits for.
  bool HoldsGatesShut(const Request& request) const {
    if (IsOverdue(request) || !Grantable(request)) return true;
    const Job& job = *ledger_.Find(request.job);
    if (ledger_.free() + uint64_t{job.spare} < request.units) return false;
    Extents both;
    const Extents& runs = FreeAnd(SpareOf(job), ledger_.map(), &both);
    return !Place(runs, End::kLow, request.units, request.contiguous, {}, Pieces::kWhole);
  }

  std::optional<Decision> TryOpen(size_t i, Measure measure, Pieces pieces) const {
    const Request& request = requests_[i];
    const Job& job = *ledger_.Find(request.job);
    // Whose turn it is not is told without adding up what everybody holds.
    if (policy_ == nullptr || !MayOpen(request)) return std::nullopt;
    if (request.kind == RequestKind::kNewcomer && SomebodyIsAway()) return std::nullopt;
    if (!Subtract(job.away, ledger_.map().FreeRuns()).empty()) return std::nullopt;
    for (const Job& other : ledger_.jobs()) {
      // I7: its demand is unknown and being measured; it has the others at their troughs.
      // Who comes back to its trough computes nothing.
      if (ledger_.rules().measure_alone && other.id != job.id &&
          request.kind != RequestKind::kSwapIn && other.phase == Phase::kUnprofiled &&
          !other.settled && !MayPass(request, other))
        return std::nullopt;
    }
    Decision decision;
    decision.kind = Decision::Kind::kGrant;
    decision.request = i;
    decision.job = job.id;
    decision.sums_only = measure == Measure::kSums;
    decision.terms = TermsFor(request, job);
    // What it waited for may need a run that its own blocks leave no room for.
    const Units units = ComesBack(request) ? 0 : request.units;
    if (ledger_.rules().check_safety &&
        !InSums().SafeWith(job.id, HeldAfter(job, request) - request.units + units,
                           decision.terms.ahead(), decision.terms.returns)) {
      return std::nullopt;
    }
    const auto open = [&](const Extents& at) {
      decision.extents = at;
      return OpensSafely(decision, measure) ? std::optional(decision) : std::nullopt;
    };
    return FirstPlace(ledger_.map().FreeRuns(), job, request,
                      {units, decision.terms.claim, decision.terms.end, std::nullopt, pieces},
                      open);
  }

  bool OpensSafely(const Decision& decision, Measure measure) const {
    const auto change = ChangeOf(decision, requests_, ledger_);
    if (!change) return false;
    if (!ledger_.rules().check_safety) return true;
    // Stricter than for a grant: while anybody is stuck, nobody new comes in.
    // On sums it is asked in sums alone: the job itself is stuck in runs afterwards.
    Prospect opened(ledger_, *change);
    if (!IsSafeAndNoWorse(ledger_, opened, measure)) return false;
    // I6: nobody begins on what a job holds that has come to a standstill in its iteration.
    const auto stands = [](const Job& job) { return job.quiet && job.phase == Phase::kRunning; };
    if (std::none_of(ledger_.jobs().begin(), ledger_.jobs().end(), stands)) return true;
    opened.trusts_quiet = false;
    return IsSafe(opened, measure);
  }

  GateTerms TermsFor(const Request& request, const Job& job) const {
    if (request.kind == RequestKind::kNewcomer) {
      return {job.limit, job.unknown_piece(), false, End::kLow};
    }
    // Back at its trough it asks for its iteration anew.
    if (request.kind == RequestKind::kSwapIn) return {static_cast<Units>(job.needs()), 1};
    // In the middle of its iteration it may still need all that it was promised.
    const bool back = request.kind == RequestKind::kBringBack;
    const uint64_t claim = back ? job.terms.claim : request.claim;
    GateTerms terms;
    terms.claim = static_cast<Units>(
        std::min<uint64_t>(std::max<uint64_t>(claim, HeldAfter(job, request)), job.limit));
    const Units piece = back ? std::max(job.terms.piece, request.contiguous) : request.piece;
    terms.piece = std::max<Units>(1, piece);
    terms.returns = request.returns;
    terms.end = back ? job.terms.end : FreeLane(ledger_, job.id);
    return terms;
  }

  /// Who begins anew may put what it keeps where an evicted job has to come back to.
  bool SomebodyIsAway() const {
    return std::any_of(ledger_.jobs().begin(), ledger_.jobs().end(),
                       [](const Job& job) { return job.phase == Phase::kEvicted; }) ||
           SomebodyMoves(requests_);
  }

  /// Nothing is measured while a job computes nothing: whoever comes back from its iteration goes
  /// on beside it. I3 counts all that the quiet job may claim as gone for good, and what it asks
  /// for comes before any gate. A newcomer begins beside one that waits for another GPU, where
  /// there is room for all: it may be what keeps that one waiting.
  bool MayPass(const Request& request, const Job& unknown) const {
    if (WaitsForNobody(request)) return true;
    if (!unknown.quiet || Asks(unknown.id)) return false;
    if (request.kind == RequestKind::kGate0) return request.returns;
    return request.kind == RequestKind::kNewcomer && unknown.collective &&
           MayHold(ledger_, request.job) <= ledger_.pool_units();
  }

  // nothing moves

  /// A job past its gate waits for what iterations that begin do not bring: others went on beside
  /// it often enough.
  bool Overdue() const {
    return std::any_of(requests_.begin(), requests_.end(), [this](const Request& request) {
      return AsksPastGate(request) && IsOverdue(request);
    });
  }

  bool Asks(JobId job) const {
    return std::any_of(requests_.begin(), requests_.end(),
                       [job](const Request& request) { return request.job == job; });
  }

  /// kForNow: nothing comes back soon, so that those who can go on with what is there do. kForGood:
  /// waiting is hopeless, and somebody is told so.
  enum class Rest : uint8_t { kForNow, kForGood };

  /// Memory may still come back without a decision: a job past its gate runs, a fence is on its
  /// way, a dead job's last holder will go. A settled job without a profile runs too, but promises
  /// nothing.
  bool SomethingMoves(Rest rest) const {
    const bool soon = rest == Rest::kForNow;
    if (SomebodyMoves(requests_)) return true;
    for (const Job& job : ledger_.jobs()) {
      if (job.unfenced > 0) return true;
      if (job.phase == Phase::kDying && job.linger < (soon ? Linger::kAWhile : Linger::kForGood))
        return true;
      if (job.past_gate() && !job.settled && !(soon && job.quiet) && !Asks(job.id)) return true;
      // It came to its trough with all it had and will ask to go on; then it drains.
      if (job.phase == Phase::kParked && GivesBackByGoingOn(job) && !Asks(job.id)) return true;
    }
    return false;
  }

  /// Parked with more than its base: it did not drain, and will at its next trough.
  static bool GivesBackByGoingOn(const Job& job) { return !job.drained && !job.loose.empty(); }

  bool SomebodyToReturn() const {
    return std::any_of(ledger_.jobs().begin(), ledger_.jobs().end(),
                       [](const Job& job) { return job.past_gate() && !job.settled; });
  }

  std::optional<Decision> OpenAtRest() const {
    // A job that came to its trough with all it had can give it back only by going on, whoever is
    // before it.
    for (const size_t i : by_ticket_) {
      if (requests_[i].kind != RequestKind::kGate0) continue;
      const Job& job = *ledger_.Find(requests_[i].job);
      if (!GivesBackByGoingOn(job)) continue;
      if (auto decision = TryOpen(i, Measure::kExtents, Pieces::kAny)) return decision;
    }
    // Bases may lie so that no run has room for a claim although the units suffice (I0). One job at
    // a time may go on all the same: it takes nothing from anybody, and it may meet only its own
    // fragmentation.
    if (SomebodyToReturn()) return std::nullopt;
    for (const size_t i : by_ticket_) {
      if (AsksPastGate(requests_[i])) continue;
      if (auto decision = TryOpen(i, Measure::kSums, Pieces::kAny)) return decision;
    }
    return std::nullopt;
  }

  /// Everybody waits for everybody. Out of memory to the one that grew: first whoever asks for more
  /// than it was promised. In a safe state there always is one (the first in the order could be
  /// served).
  std::optional<Decision> DenyAtRest() const {
    std::optional<size_t> victim;
    int worst = 0;
    for (const size_t i : by_ticket_) {
      const int rank = Blame(requests_[i]);
      if (rank > worst) {
        worst = rank;
        victim = i;
      }
    }
    if (!victim) return std::nullopt;
    const Request& request = requests_[*victim];
    const Job& job = *ledger_.Find(request.job);
    const bool left_claim = worst >= kFragmented;
    if (left_claim && requests_.size() > 1 && WorthEvicting(ledger_, request))
      return Evict(*victim);
    return Deny(*victim, AsksPastGate(request) ? DenyCode::kExhausted : DenyCode::kRefused,
                job.Title() + " waits for " + ledger_.Bytes(request.units) + " (holds " +
                    ledger_.Bytes(job.held()) + ", claim " + ledger_.Bytes(job.terms.claim) +
                    ") and nothing can come back: " + ledger_.Holders(job.id));
  }

  // of Blame
  static constexpr int kFragmented = 5;
  static constexpr int kGrew = 6;

  int Blame(const Request& request) const {
    // All that it had would be lost, and whoever holds its place goes on some day.
    if (ComesBack(request)) return 0;
    const Job& job = *ledger_.Find(request.job);
    if (AsksPastGate(request)) {
      const uint64_t wanted = uint64_t{job.leased} + request.units;
      if (HeldAfter(job, request) > job.terms.claim || wanted > job.terms.ahead()) return kGrew;
      if (!Promised(ledger_, request)) return kFragmented;  // by itself
      return job.phase == Phase::kUnprofiled ? 4 : 3;
    }
    if (SomebodyToReturn()) return 0;         // that one is decided first, then this one can open
    return job.held() > job.request ? 2 : 1;  // it keeps more at its trough than it asked for
  }

  Decision Evict(size_t i) const {
    Decision decision;
    decision.kind = Decision::Kind::kEvict;
    decision.request = i;
    decision.job = requests_[i].job;
    return decision;
  }

  Decision Deny(size_t i, DenyCode code, std::string reason) const {
    Decision decision;
    decision.kind = Decision::Kind::kDeny;
    decision.request = i;
    decision.job = requests_[i].job;
    decision.code = code;
    decision.reason = std::move(reason);
    return decision;
  }

  const Ledger& ledger_;
  const std::vector<Request>& requests_;
  const Config& config_;
  const Outlook& outlook_;
  mutable Forecast forecast_{ledger_, outlook_};
  AskAgain* again_;                  // nullptr: nobody wants to know
  SpareCursor* spare_;               // nullptr: everything is tried
  mutable bool spare_left_ = false;  // runs that were not tried yet
  mutable size_t placements_;        // tried per request
  const PolicyEntry* policy_;
  std::vector<size_t> by_ticket_;     // see Before
  mutable std::optional<Sums> sums_;  // see InSums
};

}  // namespace

std::optional<Decision> Next(const Ledger& ledger, const std::vector<Request>& requests,
                             const Config& config, const Outlook& outlook, AskAgain* again,
                             SpareCursor* spare) {
  const auto has_spare = [](const Job& job) { return job.spare > 0; };
  if (requests.empty() && std::none_of(ledger.jobs().begin(), ledger.jobs().end(), has_spare))
    return std::nullopt;
  return Round(ledger, requests, config, outlook, again, spare).Decide();
}

}  // namespace sluice::scheduler
