// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/safety/safety.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace sluice::scheduler {

namespace {

struct Party {
  const Job* job = nullptr;
  Units gives_back = 0;  // if it returns its memory
  Units need = 0;
  Units piece = kWholeClaim;
};

struct LongestRuns {
  size_t count = 0;    // 0: not even all of them suffice
  Units shortest = 0;  // of these
};

/// What a run is good for beyond what a request may find too short in it. The longest k runs serve
/// `need` where their lengths less `waste` come to `need` less `waste`; a run that is no longer
/// than that takes nothing away, so of all k the sum over those that are is the best, in any order.
Units UseOf(Units length, Units waste) { return length - std::min(length, waste); }

/// How few of the longest runs serve `need`: if any k runs suffice, the k longest do. Found by
/// halving (C. A. R. Hoare, Algorithm 65: Find, CACM 1961), not by sorting: they may be thousands.
LongestRuns RunsNeeded(const Extents& runs, Units need, Units piece) {
  const Units waste = std::min(piece, need) - 1;
  std::vector<Units> uses;
  for (const Extent& run : runs) {
    if (run.length > waste) uses.push_back(UseOf(run.length, waste));
  }
  uint64_t missing = need - waste;
  size_t taken = 0;
  auto begin = uses.begin();
  for (auto end = uses.end(); begin != end;) {
    const auto half = begin + (end - begin) / 2;
    std::nth_element(begin, half, end);
    const Units middle = *half;
    const auto alike = std::partition(begin, end, [=](Units use) { return use > middle; });
    const uint64_t longer = std::accumulate(begin, alike, uint64_t{0});
    if (longer >= missing) {
      end = alike;
      continue;
    }
    const auto shorter = std::partition(alike, end, [=](Units use) { return use == middle; });
    const size_t of_these = (missing - longer + middle - 1) / middle;
    taken += static_cast<size_t>(alike - begin);
    if (of_these <= static_cast<size_t>(shorter - alike)) {
      return {taken + of_these, middle + waste};
    }
    missing -= longer + uint64_t{middle} * static_cast<size_t>(shorter - alike);
    taken += static_cast<size_t>(shorter - alike);
    begin = shorter;
  }
  return {};
}

/// Sets aside what serves `party` for good. False when nothing does.
bool Reserve(const Party& party, Extents* available) {
  if (party.need == 0) return true;
  const LongestRuns longest = RunsNeeded(*available, party.need, party.piece);
  if (longest.count == 0) return false;
  if (longest.count == 1) {  // the shortest run that is long enough
    Extent* best = nullptr;
    for (Extent& run : *available) {
      if (run.length >= party.need && (best == nullptr || run.length < best->length)) best = &run;
    }
    best->offset += party.need;
    best->length -= party.need;
    if (best->length == 0) available->erase(available->begin() + (best - available->data()));
    return true;
  }
  // Which units of these runs it will take is not known, so what it leaves of them serves nobody
  // else. Of runs as long as the shortest of them, the first.
  const auto longer = [&](const Extent& run) { return run.length > longest.shortest; };
  size_t alike = longest.count -
                 static_cast<size_t>(std::count_if(available->begin(), available->end(), longer));
  Extents left;
  for (const Extent& run : *available) {
    if (longer(run)) continue;
    if (run.length == longest.shortest && alike > 0) {
      --alike;
    } else {
      left.push_back(run);
    }
  }
  *available = std::move(left);
  return true;
}

}  // namespace

Sums::Sums(const Ledger& ledger, Units withheld) : free_(int64_t{ledger.free()} - withheld) {
  lines_.reserve(ledger.jobs().size());
  for (const Job& job : ledger.jobs()) {
    // Comes back by itself, as in FindOrder.
    if (job.phase == Phase::kDying) free_ += job.held();
    if (job.phase == Phase::kParked) free_ += job.unfenced;
    Line line;
    line.job = job.id;
    line.past_gate = job.past_gate();
    line.returns = job.phase == Phase::kRunning && job.terms.returns;
    line.held = job.held();
    line.need = job.terms.ahead() - std::min(job.terms.ahead(), line.held);
    line.base = line.held - TotalUnits(job.loose);
    lines_.push_back(line);
  }
  std::sort(lines_.begin(), lines_.end(),
            [](const Line& a, const Line& b) { return a.need < b.need; });
  safe_ = Safe(nullptr, free_);
}

bool Sums::SafeWith(JobId job, uint64_t held, uint64_t ahead, bool returns) const {
  for (const Line& line : lines_) {
    if (line.job != job) continue;
    const int64_t left = int64_t{line.held} + free_ - static_cast<int64_t>(held);
    if (left < 0) return false;
    const Changed changed{job, returns, static_cast<int64_t>(ahead - std::min(ahead, held)),
                          static_cast<int64_t>(held - std::min<uint64_t>(line.base, held))};
    return Safe(&changed, left);
  }
  return false;
}

/// Greedy is exhaustive, see FindOrder; in numbers the least need first is one.
bool Sums::Safe(const Changed* changed, int64_t free) const {
  int64_t kept = 0;
  const auto serve = [&](bool returns, int64_t need, int64_t gives_back) {
    if (!returns) {
      kept += need;
      return true;
    }
    if (need > std::max<int64_t>(free, 0)) return false;
    free += gives_back;
    return true;
  };
  bool served = changed == nullptr;
  const auto serve_changed = [&] {
    served = true;
    return serve(changed->returns, changed->need, changed->gives_back);
  };
  for (const Line& line : lines_) {
    if (!served && changed->need <= line.need && !serve_changed()) return false;
    if (!line.past_gate || (changed != nullptr && line.job == changed->job)) continue;
    if (!serve(line.returns, line.need, int64_t{line.held} - line.base)) return false;
  }
  return (served || serve_changed()) && kept <= std::max<int64_t>(free, 0);
}

bool Fits(const Extents& runs, Units need, Units piece) {
  if (need == 0) return true;
  const Units waste = std::min(piece, need) - 1;
  uint64_t use = 0;
  for (const Extent& run : runs) {
    if (run.length >= need) return true;
    use += UseOf(run.length, waste);
  }
  return use >= need - waste;
}

namespace {

/// What is free or comes back by itself. A dead job needs nothing any more: it completes first,
/// whatever the order of the others. Parked, a job asks for nothing, so what its GPU has not passed
/// yet comes back by itself too.
template <typename OfDead, typename OfParked>
void ComesBack(const Prospect& prospect, Dying dying, OfDead of_dead, OfParked of_parked) {
  for (const Job& job : prospect.ledger.jobs()) {
    const bool opens = prospect.change != nullptr && prospect.change->job == job.id;
    if (job.phase == Phase::kDying && dying == Dying::kComesBack) of_dead(job);
    if (job.phase == Phase::kParked && !opens && job.unfenced > 0) of_parked(job);
  }
}

Extents AvailableAtFirst(const Prospect& prospect, Dying dying) {
  const PoolMap& map = prospect.ledger.map();
  Extents available = map.FreeRuns();
  if (const Change* change = prospect.change) {
    if (!change->frees.empty()) available = Union(available, change->frees);
    if (!change->takes.empty()) available = Subtract(available, change->takes);
  }
  const auto add = [&](const Extents& extents) { available = Union(available, extents); };
  ComesBack(
      prospect, dying, [&](const Job& job) { add(map.Held(job.id)); },
      [&](const Job& job) { add(map.Held(job.id, UnitState::kUnfenced)); });
  return available;
}

/// The same in numbers.
uint64_t UnitsAtFirst(const Prospect& prospect, Dying dying) {
  uint64_t units = prospect.ledger.free();
  if (const Change* change = prospect.change) {
    units += TotalUnits(change->frees);
    units -= TotalUnits(change->takes);
  }
  ComesBack(
      prospect, dying, [&](const Job& job) { units += job.held(); },
      [&](const Job& job) { units += job.unfenced; });
  return units;
}

Units Outside(const Extents& extents, const Extents& base) {
  return TotalUnits(extents) - TotalUnits(Intersect(extents, base));
}

/// To `extents`, which is not merged any more.
void AddGivenBack(const Prospect& prospect, const Job& job, Extents* extents) {
  const auto add = [extents](const Extents& more) {
    extents->insert(extents->end(), more.begin(), more.end());
  };
  const Change* change = prospect.change;
  if (change == nullptr || change->job != job.id) return add(job.loose);
  add(Subtract(Union(job.loose, Subtract(change->takes, job.base)), change->frees));
}

/// Units of its base that it does not hold. It may be granted them again, and then it keeps them at
/// its trough: whoever comes after it cannot count on them, only the job itself can.
Extents MayKeep(const Prospect& prospect, const Job& job) {
  const Change* change = prospect.change;
  if (change == nullptr || change->job != job.id) return job.missing;
  return Union(Subtract(job.missing, change->takes), Intersect(change->frees, job.base));
}

/// What is available as jobs complete: always in numbers, in runs as far as somebody asks for whom
/// the numbers do not say it. What the jobs give back is put to the runs only when they have no
/// room without it: who fits into less fits into more. Where others may keep some of it is only
/// looked at when as much, taken from anywhere, might be too much.
class Available {
 public:
  Available(const Prospect& prospect, Dying dying, const std::vector<Party>& returning)
      : prospect_(prospect), dying_(dying), units_(UnitsAtFirst(prospect, dying)) {
    pending_.reserve(returning.size());
    for (const Party& party : returning) {
      Extents units = MayKeep(prospect, *party.job);
      if (units.empty()) continue;
      const uint64_t total = TotalUnits(units);
      kept_units_ += total;
      keepers_.push_back({party.job, total, std::move(units)});
    }
  }

  bool Fits(const Party& party) {
    if (party.need == 0) return true;
    if (party.need > units_) return false;
    const Keeper* own = KeeperOf(*party.job);
    const uint64_t for_others = kept_units_ - (own != nullptr ? own->total : 0);
    // Runs of one unit are everywhere.
    if (party.piece == 1 && party.need + for_others <= units_) return true;
    if (FitsWithout(for_others, RunsSoFar(), party)) return true;
    if (!pending_.empty() && FitsWithout(for_others, Runs(), party)) return true;
    if (for_others == 0) return false;
    if (FitsInto(Open(), party)) return true;
    return own != nullptr && FitsInto(Subtract(Runs(), ForOthersThan(own)), party);
  }
  void Complete(const Party& party) {
    pending_.push_back(party.job);
    units_ += party.gives_back;
  }
  /// Without what anybody may keep.
  const Extents& Open() {
    Runs();
    if (keepers_.empty()) return runs_;
    if (!open_known_) open_ = Subtract(runs_, all_kept_.empty() ? Kept() : all_kept_);
    open_known_ = true;
    return open_;
  }

 private:
  struct Keeper {
    const Job* job;
    uint64_t total;
    Extents units;
  };

  static bool FitsInto(const Extents& runs, const Party& party) {
    return scheduler::Fits(runs, party.need, party.piece);
  }
  /// Also when any `less` of the units are taken away. Each leaves one run more, at most.
  static bool FitsWithout(uint64_t less, const Extents& runs, const Party& party) {
    if (less == 0) return FitsInto(runs, party);
    const uint64_t waste = std::min(party.piece, party.need) - 1;
    return TotalUnits(runs) >= party.need + less + (runs.size() + less) * waste;
  }
  const Keeper* KeeperOf(const Job& job) const {
    for (const Keeper& keeper : keepers_) {
      if (keeper.job == &job) return &keeper;
    }
    return nullptr;
  }
  Extents ForOthersThan(const Keeper* keeper) const {
    Extents units;
    for (const Keeper& other : keepers_) {
      if (&other != keeper) units.insert(units.end(), other.units.begin(), other.units.end());
    }
    return Merge(std::move(units));
  }
  const Extents& Kept() { return all_kept_ = ForOthersThan(nullptr); }
  const Extents& RunsSoFar() {
    if (!known_) runs_ = AvailableAtFirst(prospect_, dying_);
    known_ = true;
    return runs_;
  }
  const Extents& Runs() {
    RunsSoFar();
    if (pending_.empty()) return runs_;
    for (const Job* job : pending_) AddGivenBack(prospect_, *job, &runs_);
    runs_ = Merge(std::move(runs_));
    pending_.clear();
    open_known_ = false;
    return runs_;
  }

  const Prospect& prospect_;
  const Dying dying_;
  uint64_t units_;
  std::vector<Keeper> keepers_;
  uint64_t kept_units_ = 0;  // the sum over them: at least as many
  Extents all_kept_;         // of all of them, when somebody asked
  bool known_ = false;
  Extents runs_;
  std::vector<const Job*> pending_;  // complete, and what they give back is not in runs_ yet
  bool open_known_ = false;
  Extents open_;  // of runs_
};

bool Returns(const Prospect& prospect, const Job& job) {
  const Change* change = prospect.change;
  if (change != nullptr && change->job == job.id) return change->returns;
  const bool trusted = prospect.trusts_quiet || !job.quiet;
  return job.phase == Phase::kRunning && job.terms.returns && trusted;
}

Party PartyOf(const Prospect& prospect, const Job& job, Measure measure) {
  const bool changes = prospect.change != nullptr && prospect.change->job == job.id;
  const GateTerms& terms = changes ? prospect.change->terms : job.terms;
  Party party;
  party.job = &job;
  Units held = job.held();
  party.gives_back = TotalUnits(job.loose);
  if (changes) {
    const Change& change = *prospect.change;
    held += TotalUnits(change.takes) - TotalUnits(change.frees);
    party.gives_back += Outside(change.takes, job.base) - Outside(change.frees, job.base);
  }
  // Never below 0 under the rules; the model check switches some of them off.
  party.need = terms.ahead() - std::min(terms.ahead(), held);
  party.piece = measure == Measure::kSums ? 1 : terms.piece;
  return party;
}

}  // namespace

/// Greedy is exhaustive. Let A be the available units. A job that returns its memory takes what it
/// needs out of A, completes, and leaves A plus what it gives back: A only grows, and Fits never
/// turns false when A grows (a longer or a merged run serves all that the shorter ones served).
/// What another one may keep is never in A, and that is the same throughout. So whoever fits now
/// still fits after any other job has completed, and taking it first excludes no order: if any
/// order completes a set of jobs, the greedy one completes that set. Jobs that give nothing back
/// help nobody and are not helped by waiting for each other: they come last, each with units set
/// aside for itself alone. (Among several of those the packing is first fit by need and may refuse
/// what a perfect packing allows.)
Order FindOrder(const Prospect& prospect, Measure measure, Dying dying) {
  std::vector<Party> returning;
  std::vector<Party> keeping;
  returning.reserve(prospect.ledger.jobs().size());
  for (const Job& job : prospect.ledger.jobs()) {
    const bool changes = prospect.change != nullptr && prospect.change->job == job.id;
    if (!changes && !job.past_gate()) continue;
    (Returns(prospect, job) ? returning : keeping).push_back(PartyOf(prospect, job, measure));
  }
  Order result;
  result.order.reserve(returning.size() + keeping.size());
  Available available(prospect, dying, returning);
  for (bool found = true; found && !returning.empty();) {
    found = false;
    for (size_t i = 0; i < returning.size(); ++i) {
      if (!available.Fits(returning[i])) continue;
      available.Complete(returning[i]);
      result.order.push_back(returning[i].job->id);
      returning.erase(returning.begin() + static_cast<std::ptrdiff_t>(i));
      found = true;
      break;
    }
  }
  for (const Party& party : returning) result.stuck.push_back(party.job->id);

  std::stable_sort(keeping.begin(), keeping.end(),
                   [](const Party& a, const Party& b) { return a.need > b.need; });
  Extents rest = keeping.empty() ? Extents() : available.Open();
  for (const Party& party : keeping) {
    // Nothing has to be set aside for who comes last.
    const bool last = &party == &keeping.back();
    const bool served = last ? Fits(rest, party.need, party.piece) : Reserve(party, &rest);
    (served ? result.order : result.stuck).push_back(party.job->id);
  }
  std::sort(result.stuck.begin(), result.stuck.end());
  return result;
}

bool IsSafe(const Prospect& prospect, Measure measure, Dying dying) {
  return FindOrder(prospect, measure, dying).safe();
}

SpareRuns::SpareRuns(const Ledger& ledger, const Job& job) {
  const Prospect now(ledger);
  const Order order = FindOrder(now);
  const bool stuck = std::binary_search(order.stuck.begin(), order.stuck.end(), job.id);
  if (stuck || !job.past_gate()) return;
  // All who give back complete first, as far as they can. What they may keep is not looked at: with
  // it there is more room than there will be, so who has none here has none.
  runs_ = AvailableAtFirst(now, Dying::kComesBack);
  std::vector<Party> others;
  for (const Job& other : ledger.jobs()) {
    if (other.id != job.id && other.past_gate() && Returns(now, other))
      others.push_back(PartyOf(now, other, Measure::kExtents));
  }
  for (bool found = true; found;) {
    found = false;
    for (size_t i = 0; i < others.size(); ++i) {
      if (!Fits(runs_, others[i].need, others[i].piece)) continue;
      AddGivenBack(now, *others[i].job, &runs_);
      runs_ = Merge(std::move(runs_));
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      found = true;
      break;
    }
  }
  // The job first.
  others.insert(others.begin(), PartyOf(now, job, Measure::kExtents));
  for (const Party& party : others) {
    Waits waits{party.need, party.piece, 0};
    for (const Extent& run : runs_) waits.use += UseOf(run.length, party.piece - 1);
    waits_.push_back(waits);
  }
  for (const Extent& run : runs_) longest_ = std::max(longest_, run.length);
}

bool SpareRuns::MayBeFreed(const Extent& run) const {
  if (waits_.empty()) return true;
  // What it is one run with.
  const auto right = std::partition_point(
      runs_.begin(), runs_.end(), [&](const Extent& one) { return one.offset < run.offset; });
  const bool joins_left = right != runs_.begin() && (right - 1)->end() == run.offset;
  const bool joins_right = right != runs_.end() && right->offset == run.end();
  const Units left = joins_left ? (right - 1)->length : 0;
  const Units behind = joins_right ? right->length : 0;
  const Units joined = left + run.length + behind;
  for (const Waits& waits : waits_) {
    const Units waste = waits.piece - 1;
    // The first is the job itself: it has the run no more.
    const Units need = waits.need + (&waits == &waits_.front() ? run.length : 0);
    const uint64_t use =
        waits.use - UseOf(left, waste) - UseOf(behind, waste) + UseOf(joined, waste);
    if (need <= std::max(longest_, joined)) return true;
    if (waits.piece < need && use >= need - waste) return true;
  }
  return false;
}

namespace {

/// Both measures: where runs are lost already, sums must not get lost as well, since they are what
/// a gate on sums (policy, OpenAtRest) lives on.
bool NoWorseWith(Dying dying, const Ledger& before, const Prospect& after, Measure finest) {
  for (const Measure measure : {Measure::kExtents, Measure::kSums}) {
    if (measure < finest) continue;
    const Order now = FindOrder(after, measure, dying);
    if (now.safe()) return true;  // in extents, hence in sums
    const Order then = FindOrder(before, measure, dying);
    if (!std::includes(then.stuck.begin(), then.stuck.end(), now.stuck.begin(), now.stuck.end())) {
      return false;
    }
  }
  return true;
}

/// Somebody may be safe only with what dying jobs hold, but a decision must not be what makes it
/// so. With nobody dying it is the same question again.
bool NoWorseIfDeadStay(const Ledger& before, const Prospect& after, Measure finest) {
  const bool any_dying = std::any_of(before.jobs().begin(), before.jobs().end(),
                                     [](const Job& job) { return job.phase == Phase::kDying; });
  return !any_dying || NoWorseWith(Dying::kMayStay, before, after, finest);
}

/// One of jobs that all return their memory takes and frees nothing and counts on no more than
/// before: whoever could complete still can. (Beside jobs that keep theirs it is no proof: more
/// that is available may be packed worse.)
bool OnlyWaives(const Prospect& after) {
  const Change* change = after.change;
  if (change == nullptr || !change->takes.empty() || !change->frees.empty()) return false;
  const Job& job = *after.ledger.Find(change->job);
  return job.past_gate() && change->terms.ahead() <= job.terms.ahead() &&
         change->terms.piece <= job.terms.piece &&
         std::all_of(after.ledger.jobs().begin(), after.ledger.jobs().end(),
                     [&](const Job& one) { return !one.past_gate() || Returns(after, one); });
}

}  // namespace

bool NoWorse(const Ledger& before, const Prospect& after, Measure finest) {
  if (&before == &after.ledger && OnlyWaives(after)) return true;
  return NoWorseWith(Dying::kComesBack, before, after, finest) &&
         NoWorseIfDeadStay(before, after, finest);
}

bool IsSafeAndNoWorse(const Ledger& before, const Prospect& after, Measure measure) {
  return IsSafe(after, measure) && NoWorseIfDeadStay(before, after, measure);
}

}  // namespace sluice::scheduler
