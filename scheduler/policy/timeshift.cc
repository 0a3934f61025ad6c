// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// TimeShift of Zico (Lim et al., section 5): an iteration is delayed as a whole, by the least time
// (equation 1) after which all that is predicted to be held stays within the budget (equation 2).
// For any number of jobs, where the paper pairs them: what the others hold is added up.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "scheduler/policy/forecast.h"
#include "scheduler/policy/policies.h"
#include "scheduler/policy/soft_budget.h"

namespace sluice::scheduler {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kTick = 1;  // nanoseconds: no clock tells less, and sums are rounded

bool LanesAreTaken(const Asked& asked) {
  const uint32_t taken = Occupants(asked.ledger, asked.request.job);
  return taken > 0 && taken >= asked.config.lanes;
}

/// The least delay of `mine` after which it fits into `room` beside all that are under way at every
/// time. Where two steps collide there is no delay below the one after which they do not meet, so
/// each collision gives a bound, and the first delay without one is the least. `delay` is none
/// above it. Infinity: never. From `within` on, a bound will do.
double LeastDelay(const UseOverTime& mine, Forecast* others, int64_t room, double delay,
                  double within) {
  for (bool moved = true; moved && (delay < kTick || delay < within);) {
    moved = false;
    size_t j = 0;
    for (size_t i = 0; i + 1 < mine.steps.size() && !moved; ++i) {  // behind the last it is parked
      const double begin = delay + mine.steps[i].from_ns;
      const double end = delay + mine.steps[i + 1].from_ns;
      while (others->EndOf(j) < begin + kTick) ++j;
      for (size_t k = j; others->At(k) != nullptr && others->At(k)->from_ns < end; ++k) {
        if (int64_t{mine.steps[i].units} + others->At(k)->units <= room) continue;
        if (others->EndOf(k) == kNever) return kNever;
        delay = others->EndOf(k) - mine.steps[i].from_ns;
        moved = true;
        break;
      }
    }
  }
  return delay;
}

/// What may be used at first, and how it grows: the first iterations together are to show how long
/// the jobs take beside each other, without much sharing (the informed phase of Zico 5.3).
Units Budget(const Asked& asked, const Forecast::Jobs& jobs) {
  const Units pool = CountedOn(asked.ledger, asked.config);
  const uint64_t least = std::min<uint64_t>(jobs.bases + jobs.transient, pool);
  const uint64_t steps = std::max(asked.config.budget_steps, 1u);
  return static_cast<Units>(least + (pool - least) * std::min(jobs.iterations, steps) / steps);
}

/// A delay below which `mine` would not fit beside the others, found by looking at a few times
/// only, and not for one above `enough`. 0: none was found, and nothing is said.
double ShortOf(const UseOverTime& mine, Forecast* others, int64_t room, double enough) {
  constexpr size_t kLooks = 16;
  others->GoToNow();
  const std::vector<UseOverTime::Step>& steps = mine.steps;
  const size_t apart = 1 + steps.size() / kLooks;
  double least = 0;
  for (size_t i = apart / 2; i + 1 < steps.size(); i += apart) {
    const double begin = steps[i].from_ns;
    const double end = steps[i + 1].from_ns;
    // Roundings, and what LeastDelay lets pass.
    if (end - begin < 8 * kTick) continue;
    const double in = end - 4 * kTick;
    const Forecast::Held held = others->In(in);
    if (int64_t{steps[i].units} + held.units <= room || held.until_ns - in <= 4 * kTick) continue;
    // However it is moved up to there, this step meets as much of the others.
    least = std::max(least, held.until_ns - begin - 4 * kTick);
    if (least >= enough) break;
  }
  return least;
}

}  // namespace

double TimeShiftOpensIn(const Asked& asked, double within) {
  // Mostly so, and seen before anything is predicted.
  if (LanesAreTaken(asked)) return kNever;
  const Course* course = asked.outlook.Of(asked.request.job);
  const Forecast::Jobs& jobs = asked.forecast.jobs();
  // Where nothing can be predicted, one at a time.
  if (!jobs.predictable || (course == nullptr && jobs.change)) return kNever;
  if (asked.ledger.jobs().size() < 2 || course == nullptr) return 0;
  // It is none of those who are under way: what it holds is among what stays.
  const Units held = asked.ledger.Find(asked.request.job)->held();
  const int64_t room = int64_t{Budget(asked, jobs)} - jobs.resident + held;
  const UseOverTime& mine = course->Whole();
  const double least = ShortOf(mine, &asked.forecast, room, within);
  if (least > 0 && least >= within) return least;
  const double delay = LeastDelay(mine, &asked.forecast, room, least, within);
  return delay < kTick ? 0 : delay;
}

bool TimeShiftMayOpen(const Asked& asked) {
  // With nobody else under way there is nothing to wait for, whatever was predicted. Else any delay
  // is too much, however long.
  return Occupants(asked.ledger, asked.request.job) == 0 || TimeShiftOpensIn(asked, 0) <= 0;
}

}  // namespace sluice::scheduler
