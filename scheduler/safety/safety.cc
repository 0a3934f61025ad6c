// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/safety/safety.h"

#include <algorithm>
#include <optional>

namespace sluice::scheduler {

namespace {

struct Party {
  JobId job = kNoJob;
  Units need = 0;
  Units piece = kWholeClaim;
  Extents gives_back;
};

std::vector<Units> Longest(const Extents& runs) {
  std::vector<Units> lengths;
  lengths.reserve(runs.size());
  for (const Extent& run : runs) lengths.push_back(run.length);
  std::sort(lengths.rbegin(), lengths.rend());
  return lengths;
}

/// How many of the longest runs serve `need`; 0: not even all of them. The longest first: each
/// further run adds its length and costs `waste`, so if any k runs suffice, the k longest do.
size_t RunsNeeded(const std::vector<Units>& lengths, Units need, Units piece) {
  const uint64_t waste = std::min(piece, need) - 1;
  uint64_t sum = 0;
  for (size_t k = 0; k < lengths.size(); ++k) {
    sum += lengths[k];
    if (sum >= need + k * waste) return k + 1;
  }
  return 0;
}

/// Sets aside what serves `party` for good. False when nothing does.
bool Reserve(const Party& party, Extents* available) {
  if (party.need == 0) return true;
  const size_t k = RunsNeeded(Longest(*available), party.need, party.piece);
  if (k == 0) return false;
  if (k == 1) {  // the shortest run that is long enough
    Extent* best = nullptr;
    for (Extent& run : *available) {
      if (run.length >= party.need && (best == nullptr || run.length < best->length)) best = &run;
    }
    best->offset += party.need;
    best->length -= party.need;
    *available = Merge(*available);
    return true;
  }
  // Which units of these runs it will take is not known, so what it leaves of them serves nobody
  // else.
  std::stable_sort(available->begin(), available->end(),
                   [](const Extent& a, const Extent& b) { return a.length > b.length; });
  available->erase(available->begin(), available->begin() + static_cast<std::ptrdiff_t>(k));
  *available = Merge(*available);
  return true;
}

}  // namespace

Sums::Sums(const Ledger& ledger) : free_(ledger.free()) {
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
    line.ahead = job.terms.ahead();
    for (const Extent& base : job.base) line.base += ledger.map().Count(base, job.id);
    lines_.push_back(line);
  }
}

bool Sums::SafeWith(JobId job, uint64_t held, uint64_t ahead, bool returns) const {
  std::vector<Line> lines = lines_;
  for (Line& line : lines) {
    if (line.job != job) continue;
    if (held > line.held + free_) return false;
    const uint64_t free = line.held + free_ - held;
    line.past_gate = true;
    line.returns = returns;
    line.held = held;
    line.ahead = ahead;
    return Safe(std::move(lines), free);
  }
  return false;
}

/// Greedy is exhaustive, see FindOrder.
bool Sums::Safe(std::vector<Line> lines, uint64_t free) {
  const auto need = [](const Line& line) { return line.ahead - std::min(line.ahead, line.held); };
  for (bool found = true; found;) {
    found = false;
    for (Line& line : lines) {
      if (!line.past_gate || !line.returns || need(line) > free) continue;
      free += line.held - std::min(line.base, line.held);
      line.past_gate = false;
      found = true;
    }
  }
  uint64_t kept = 0;
  for (const Line& line : lines) {
    if (!line.past_gate) continue;
    if (line.returns) return false;
    kept += need(line);
  }
  return kept <= free;
}

bool Fits(const Extents& runs, Units need, Units piece) {
  return need == 0 || RunsNeeded(Longest(runs), need, piece) > 0;
}

namespace {

/// The order when every job past its gate has room in the longest free run as it is, nearly always;
/// nullopt: that has to be looked at more closely. One run of `need` suffices whatever the pieces
/// (Fits), and what the others give back only makes it longer.
std::optional<Order> OrderAtOnce(const Ledger& ledger) {
  Units longest = 0;
  for (const Span& span : ledger.map().spans()) {
    if (span.state == UnitState::kFree) longest = std::max(longest, span.length);
  }
  Order result;
  for (const Job& job : ledger.jobs()) {
    if (!job.past_gate()) continue;
    const bool gives_back = job.phase == Phase::kRunning && job.terms.returns;
    const Units ahead = job.terms.ahead();
    if (!gives_back || ahead - std::min(ahead, job.held()) > longest) return std::nullopt;
    result.order.push_back(job.id);
  }
  return result;
}

}  // namespace

/// Greedy is exhaustive. Let A be the available units. A job that returns its memory takes what it
/// needs out of A, completes, and leaves A plus what it gives back: A only grows, and Fits never
/// turns false when A grows (a longer or a merged run serves all that the shorter ones served). So
/// whoever fits now still fits after any other job has completed, and taking it first excludes no
/// order: if any order completes a set of jobs, the greedy one completes that set. Jobs that give
/// nothing back help nobody and are not helped by waiting for each other: they come last, each with
/// units set aside for itself alone. (Among several of those the packing is first fit by need and
/// may refuse what a perfect packing allows.)
Order FindOrder(const Ledger& ledger, Measure measure, Dying dying) {
  if (std::optional<Order> order = OrderAtOnce(ledger)) return *std::move(order);
  Extents available = ledger.map().FreeRuns();
  std::vector<Party> returning;
  std::vector<Party> keeping;
  for (const Job& job : ledger.jobs()) {
    // A dead job needs nothing any more: it completes first, whatever the order of the others.
    if (job.phase == Phase::kDying && dying == Dying::kComesBack) {
      available = Union(available, ledger.map().Held(job.id));
    }
    // Parked, it asks for nothing, so what its GPU has not passed yet comes back by itself too.
    if (job.phase == Phase::kParked && job.unfenced > 0) {
      available = Union(available, ledger.map().Held(job.id, UnitState::kUnfenced));
    }
    if (!job.past_gate()) continue;
    Party party;
    party.job = job.id;
    // Never below 0 under the rules; the model check switches some of them off.
    party.need = job.terms.ahead() - std::min(job.terms.ahead(), job.held());
    party.piece = measure == Measure::kSums ? 1 : job.terms.piece;
    if (job.phase == Phase::kRunning && job.terms.returns) {
      party.gives_back = ledger.GivesBack(job.id);
      returning.push_back(std::move(party));
    } else {
      keeping.push_back(std::move(party));
    }
  }

  Order result;
  for (bool found = true; found && !returning.empty();) {
    found = false;
    for (size_t i = 0; i < returning.size(); ++i) {
      if (!Fits(available, returning[i].need, returning[i].piece)) continue;
      available = Union(available, returning[i].gives_back);
      result.order.push_back(returning[i].job);
      returning.erase(returning.begin() + static_cast<std::ptrdiff_t>(i));
      found = true;
      break;
    }
  }
  for (const Party& party : returning) result.stuck.push_back(party.job);

  std::stable_sort(keeping.begin(), keeping.end(),
                   [](const Party& a, const Party& b) { return a.need > b.need; });
  for (const Party& party : keeping) {
    (Reserve(party, &available) ? result.order : result.stuck).push_back(party.job);
  }
  std::sort(result.stuck.begin(), result.stuck.end());
  return result;
}

bool IsSafe(const Ledger& ledger, Measure measure, Dying dying) {
  return FindOrder(ledger, measure, dying).safe();
}

bool NoWorse(const Ledger& before, const Ledger& after, Measure finest) {
  // Both ways to count dying jobs: somebody may be safe only with their memory, but a decision must
  // not be what makes it so. Both measures: where runs are lost already, sums must not get lost as
  // well, since they are what a gate on sums (policy, OpenAtRest) lives on.
  bool any_dying = false;
  for (const Job& job : before.jobs()) any_dying |= job.phase == Phase::kDying;
  for (const Dying dying : {Dying::kComesBack, Dying::kMayStay}) {
    if (dying == Dying::kMayStay && !any_dying) break;  // the same question again
    for (const Measure measure : {Measure::kExtents, Measure::kSums}) {
      if (measure < finest) continue;
      const Order now = FindOrder(after, measure, dying);
      if (now.safe()) break;  // in extents, hence in sums
      const Order then = FindOrder(before, measure, dying);
      if (!std::includes(then.stuck.begin(), then.stuck.end(), now.stuck.begin(),
                         now.stuck.end())) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace sluice::scheduler
