// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// TimeShift of Zico (Lim et al., section 5): an iteration is delayed as a whole, by the least time
// (equation 1) after which all that is predicted to be held stays within the budget (equation 2).
// For any number of jobs, where the paper pairs them: what the others hold is added up.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "scheduler/policy/policies.h"
#include "scheduler/policy/soft_budget.h"

namespace sluice::scheduler {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kTick = 1;  // nanoseconds: no clock tells less, and sums are rounded

/// Its memory is expected to change.
bool UnderWay(const Job& job) { return job.past_gate() && !job.settled && !job.quiet; }

/// The sum of several uses.
UseOverTime Sum(const std::vector<UseOverTime>& uses) {
  UseOverTime sum;
  std::vector<size_t> at(uses.size(), 0);
  double now = 0;
  while (true) {
    Units units = 0;
    double next = kNever;
    for (size_t i = 0; i < uses.size(); ++i) {
      const std::vector<UseOverTime::Step>& steps = uses[i].steps;
      while (at[i] + 1 < steps.size() && steps[at[i] + 1].from_ns <= now) ++at[i];
      units += steps[at[i]].units;
      if (at[i] + 1 < steps.size()) next = std::min(next, steps[at[i] + 1].from_ns);
    }
    sum.steps.push_back({now, units});
    if (next == kNever) return sum;
    now = next;
  }
}

double EndOf(const UseOverTime& use, size_t i) {
  return i + 1 < use.steps.size() ? use.steps[i + 1].from_ns : kNever;
}

/// The least delay of `mine` after which it fits beside `others` in `budget` at every time. Where
/// two steps collide there is no delay below the one after which they do not meet, so each
/// collision gives a bound, and the first delay without one is the least. Infinity: never. From
/// `within` on, a bound will do.
double LeastDelay(const UseOverTime& mine, const UseOverTime& others, Units budget, double within) {
  double delay = 0;
  for (bool moved = true; moved && (delay < kTick || delay < within);) {
    moved = false;
    size_t j = 0;
    for (size_t i = 0; i + 1 < mine.steps.size() && !moved; ++i) {  // behind the last it is parked
      const double begin = delay + mine.steps[i].from_ns;
      const double end = delay + EndOf(mine, i);
      while (EndOf(others, j) < begin + kTick) ++j;
      for (size_t k = j; k < others.steps.size() && others.steps[k].from_ns < end; ++k) {
        if (uint64_t{mine.steps[i].units} + others.steps[k].units <= budget) continue;
        if (EndOf(others, k) == kNever) return kNever;
        delay = EndOf(others, k) - mine.steps[i].from_ns;
        moved = true;
        break;
      }
    }
  }
  return delay;
}

/// What may be used at first, and how it grows: the first iterations together are to show how long
/// the jobs take beside each other, without much sharing (the informed phase of Zico 5.3).
Units Budget(const Asked& asked, const Course& mine) {
  const Units pool = CountedOn(asked.ledger, asked.config);
  uint64_t iterations = mine.iterations();
  uint64_t bases = 0;
  Units transient = 0;
  for (const Job& job : asked.ledger.jobs()) {
    const Course* course = asked.outlook.Of(job.id);
    if (course == nullptr) {
      bases += job.held();
      continue;
    }
    iterations = std::min(iterations, course->iterations());
    bases += course->base();
    transient = std::max(transient, course->peak() - std::min(course->peak(), course->base()));
  }
  const uint64_t least = std::min<uint64_t>(bases + transient, pool);
  const uint64_t steps = std::max(asked.config.budget_steps, 1u);
  return static_cast<Units>(least + (pool - least) * std::min(iterations, steps) / steps);
}

/// What is held beside the job at a time, at least, and until when.
Course::Least OthersAt(const Asked& asked, double in_ns) {
  Course::Least sum{0, kNever};
  for (const Job& job : asked.ledger.jobs()) {
    if (job.id == asked.request.job) continue;
    if (!UnderWay(job)) {
      sum.units += job.held();
      continue;
    }
    const Course::Least least = asked.outlook.Of(job.id)->AheadAt(asked.outlook.now_ns, in_ns);
    sum.units += least.units;
    sum.until_ns = std::min(sum.until_ns, least.until_ns);
  }
  return sum;
}

/// A delay below which `mine` would not fit beside the others, found by looking at a few times
/// only. 0: none was found, and nothing is said.
double ShortOf(const Asked& asked, const Course& mine, Units budget) {
  constexpr size_t kLooks = 16;
  const std::vector<UseOverTime::Step>& steps = mine.Fresh().steps;
  const size_t apart = 1 + steps.size() / kLooks;
  for (size_t i = apart / 2; i + 1 < steps.size(); i += apart) {
    const double begin = steps[i].from_ns;
    const double end = steps[i + 1].from_ns;
    // Roundings, and what LeastDelay lets pass.
    if (end - begin < 8 * kTick) continue;
    const double in = end - 4 * kTick;
    const Course::Least others = OthersAt(asked, in);
    if (uint64_t{steps[i].units} + others.units <= budget) continue;
    // However it is moved up to there, this step meets as much of the others.
    if (others.until_ns - in > 4 * kTick) return others.until_ns - begin - 4 * kTick;
  }
  return 0;
}

/// Why there is nothing to compute: the answer.
std::optional<double> AtOnce(const Asked& asked, const Course* mine) {
  bool others = false;
  uint32_t occupants = 0;
  for (const Job& job : asked.ledger.jobs()) {
    if (job.id == asked.request.job) continue;
    others = true;
    if (!UnderWay(job)) continue;
    ++occupants;
    const Course* course = asked.outlook.Of(job.id);
    // Nothing can be predicted: one at a time.
    if (course == nullptr || !course->open() || mine == nullptr) return kNever;
  }
  if (!others || mine == nullptr) return 0;
  if (occupants >= asked.config.lanes) return kNever;
  return std::nullopt;
}

}  // namespace

double TimeShiftOpensIn(const Asked& asked, double within) {
  const Course* mine = asked.outlook.Of(asked.request.job);
  if (const auto answer = AtOnce(asked, mine)) return *answer;
  const Units budget = Budget(asked, *mine);
  const double least = ShortOf(asked, *mine, budget);
  if (least > 0 && least >= within) return least;
  Units resident = 0;
  std::vector<UseOverTime> others;
  for (const Job& job : asked.ledger.jobs()) {
    if (job.id == asked.request.job) continue;
    if (UnderWay(job)) {
      others.push_back(asked.outlook.Of(job.id)->Ahead(asked.outlook.now_ns));
    } else {
      resident += job.held();
    }
  }
  others.push_back({{{0, resident}}});
  const double delay = LeastDelay(mine->Fresh(), Sum(others), budget, within);
  return delay < kTick ? 0 : delay;
}

bool TimeShiftMayOpen(const Asked& asked) {
  // With nobody else under way there is nothing to wait for, whatever was predicted. Else any delay
  // is too much, however long.
  return Occupants(asked.ledger, asked.request.job) == 0 || TimeShiftOpensIn(asked, 0) <= 0;
}

}  // namespace sluice::scheduler
