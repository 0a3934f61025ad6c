// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "scheduler/ledger/ledger.h"

/// I3, the safe state: the jobs past their gate can be ordered so that each one finds its whole
/// remaining claim in units that are free or were given back by those before it, and that none of
/// the others may keep at its trough.
///
/// The banker's algorithm (Dijkstra, EWD 623), with claims that lie in runs of one offset space
/// instead of numbers: docs/adr/0003-safe-state-in-extents.md. Zico (5.3) starts an
/// iteration when the predicted sums fit, and falls back to taking turns where a prediction fails;
/// here nothing rests on when jobs do something. Pure functions; a search costs (jobs past their
/// gate)^2 times the pieces of the map.
namespace sluice::scheduler {

/// kExtents: the remaining claim can be handed out in any shape the job may ask for (runs of at
/// most `piece` units). kSums: only the number of units counts. Extents imply sums.
enum class Measure : uint8_t { kExtents, kSums };

/// Whether units of dying jobs count as available. They come back by themselves, so grants to jobs
/// past their gate may count on them; nothing new is opened on memory whose last holder may live on
/// for long.
enum class Dying : uint8_t { kComesBack, kMayStay };

/// What one decision changes as far as I3 goes. Units of its own that only change their state
/// (spare ones that are leased again) are in neither list.
struct Change {
  JobId job = kNoJob;
  GateTerms terms;       // afterwards
  bool returns = false;  // afterwards: it runs, and gives back all but its base at its trough
  Extents takes;         // free units that it holds afterwards; sorted, merged
  Extents frees;         // spare units of its own that are free afterwards; sorted, merged
};

/// A ledger as it stands, or as it would stand after one change: a decision is judged without a
/// copy of the ledger to make it on. Refers to both; they outlive it.
struct Prospect {
  Prospect(const Ledger& l) : ledger(l) {}  // NOLINT(google-explicit-constructor): the plain case
  Prospect(const Ledger& l, const Change& c) : ledger(l), change(&c) {}
  const Ledger& ledger;
  const Change* change = nullptr;
  /// Jobs past their gate that compute nothing give back what they hold all the same. False: they
  /// get no credit for that (I6), only what they were promised.
  bool trusts_quiet = true;
};

/// I3 in numbers (Measure::kSums, Dying::kComesBack) as arithmetic on a few integers per job: what
/// it refuses no placement can save, so it is asked before one is looked for. Which free units
/// somebody may keep is not looked at.
class Sums {
 public:
  /// `withheld`: so many of the free units count as taken, and as owed where fewer are free.
  explicit Sums(const Ledger& ledger, Units withheld = 0);

  bool safe() const { return safe_; }
  /// The same after `job`, past its gate from now on at the latest, holds `held` units, counts on
  /// `ahead`, and has taken what it holds more from the free ones (or given them the rest).
  bool SafeWith(JobId job, uint64_t held, uint64_t ahead, bool returns) const;

 private:
  struct Line {
    JobId job = kNoJob;
    bool past_gate = false;
    bool returns = false;
    Units need = 0;  // still, of its claim
    Units held = 0;
    Units base = 0;  // of what it holds: not given back
  };
  /// What a job would be otherwise than its line says.
  struct Changed {
    JobId job = kNoJob;
    bool returns = false;
    int64_t need = 0;
    int64_t gives_back = 0;
  };
  bool Safe(const Changed* changed, int64_t free) const;

  std::vector<Line> lines_;  // by need, those outside their iteration too
  int64_t free_ = 0;         // below 0: owed
  bool safe_ = true;
};

/// True if from `runs` any sequence of requests of `need` units in total, each with a run of at
/// most `piece`, can be served without moving anything. One run of `need` always suffices. k runs
/// suffice when they have need + (k - 1) * (piece - 1) units: a request fails only if each of them
/// is down to piece - 1.
bool Fits(const Extents& runs, Units need, Units piece);

struct Order {
  std::vector<JobId>
      order;  // can all complete, in this order; jobs that give nothing back come last
  /// Cannot, even after all of `order` have; empty: I3 holds. Sorted by id.
  std::vector<JobId> stuck;
  bool safe() const { return stuck.empty(); }
};

/// The jobs past their gate in an order in which they can complete. Greedy is exhaustive (proof in
/// the .cc).
Order FindOrder(const Prospect& prospect, Measure measure = Measure::kExtents,
                Dying dying = Dying::kComesBack);

/// I3 as the prospect stands.
bool IsSafe(const Prospect& prospect, Measure measure = Measure::kExtents,
            Dying dying = Dying::kComesBack);

/// No job that could complete before (in extents, in sums) cannot complete after. When I3 held
/// before, this is I3 after. When it did not (a job kept memory at its trough that it had not held
/// there before), it still lets those who can complete go on. kSums: asked on sums alone.
/// `before` is a ledger as it stands.
bool NoWorse(const Ledger& before, const Prospect& after, Measure finest = Measure::kExtents);

/// Which of a job's spare runs may become free, by one look at the pool for all of them: a search
/// for an order each costs the pieces of the pool each time. A run whose units leave the job stuck,
/// whoever completes before it, is told at once.
class SpareRuns {
 public:
  /// Of a job past its gate. Looks at the ledger as it stands and keeps nothing of it.
  SpareRuns(const Ledger& ledger, const Job& job);
  /// False: NoWorse says no where this run alone, one of the job's spare ones, becomes free. True:
  /// it has to be asked.
  bool MayBeFreed(const Extent& run) const;

 private:
  /// The job, and those that cannot complete before it as things stand.
  struct Waits {
    Units need;
    Units piece;
    uint64_t use;  // of all runs
  };

  Extents runs_;  // when all have completed that can without the job
  Units longest_ = 0;
  std::vector<Waits> waits_;  // empty: nothing can be told
};

/// IsSafe(after) and NoWorse(before, after), for whoever asks both.
bool IsSafeAndNoWorse(const Ledger& before, const Prospect& after, Measure measure);

}  // namespace sluice::scheduler
