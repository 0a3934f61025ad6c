// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// TimeShift of Zico (Lim et al., section 5): an iteration is delayed as a whole, by the least time
// (equation 1) after which all that is predicted to be held stays within the budget (equation 2).
// For any number of jobs, where the paper pairs them: what the others hold is added up.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "scheduler/policy/policies.h"
#include "scheduler/policy/soft_budget.h"

namespace sluice::scheduler {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kTick = 1;  // nanoseconds: no clock tells less, and sums are rounded

/// Its memory is expected to change.
bool UnderWay(const Job& job) { return job.past_gate() && !job.settled && !job.quiet; }

bool LanesAreTaken(const Asked& asked) {
  const uint32_t taken = Occupants(asked.ledger, asked.request.job);
  return taken > 0 && taken >= asked.config.lanes;
}

/// The rest of an iteration that is under way, looked at from now on.
class Rest {
 public:
  Rest(const Course& course, double now_ns)
      : steps_(&course.Whole().steps), along_ns_(course.Along(now_ns)) {
    const auto next = std::partition_point(
        steps_->begin() + 1, steps_->end(),
        [this](const UseOverTime::Step& step) { return step.from_ns - along_ns_ <= 0; });
    at_ = now_at_ = static_cast<size_t>(next - steps_->begin()) - 1;
  }

  void GoToNow() { at_ = now_at_; }

  /// To what lasts in so long from now, and no way back.
  void GoTo(double in_ns) {
    while (EndsIn() <= in_ns) ++at_;
  }
  Units units() const { return (*steps_)[at_].units; }
  double EndsIn() const {
    return at_ + 1 < steps_->size() ? (*steps_)[at_ + 1].from_ns - along_ns_ : kNever;
  }

 private:
  const std::vector<UseOverTime::Step>* steps_;
  double along_ns_;  // where in it now is
  size_t at_ = 0;
  size_t now_at_ = 0;
};

/// What is to be known of the jobs, the one that asks among them.
struct Jobs {
  explicit Jobs(const Asked& asked);

  const Course* mine = nullptr;
  bool others = false;
  bool predictable = true;  // all others that are under way
  std::vector<Rest> under_way;
  Units resident = 0;  // held by others who do not change it
  // of all whose course is known, and what the rest holds
  uint64_t iterations = std::numeric_limits<uint64_t>::max();
  uint64_t bases = 0;
  Units transient = 0;
};

Jobs::Jobs(const Asked& asked) {
  under_way.reserve(asked.ledger.jobs().size());
  for (const Job& job : asked.ledger.jobs()) {
    const Course* course = asked.outlook.Of(job.id);
    if (course == nullptr) {
      bases += job.held();
    } else {
      iterations = std::min(iterations, course->iterations());
      bases += course->base();
      transient = std::max(transient, course->peak() - std::min(course->peak(), course->base()));
    }
    if (job.id == asked.request.job) {
      mine = course;
      continue;
    }
    others = true;
    if (!UnderWay(job)) {
      resident += job.held();
      continue;
    }
    if (course == nullptr || !course->open()) {
      predictable = false;
      continue;
    }
    under_way.emplace_back(*course, asked.outlook.now_ns);
  }
}

/// What they hold together over time, from now on. A step is added up when it is looked at: a
/// collision early in the iteration makes the rest of it unimportant.
class Sum {
 public:
  explicit Sum(Jobs* jobs) : resident_(jobs->resident), rests_(jobs->under_way) {
    for (Rest& rest : rests_) rest.GoToNow();
    constexpr size_t kFewSteps = 32;
    steps_.reserve(kFewSteps);
  }

  /// nullptr: the one before it was the last.
  const UseOverTime::Step* At(size_t k) {
    while (k >= steps_.size() && next_ns_ != kNever) Add();
    return k < steps_.size() ? &steps_[k] : nullptr;
  }
  double EndOf(size_t k) {
    const UseOverTime::Step* next = At(k + 1);
    return next != nullptr ? next->from_ns : kNever;
  }

 private:
  void Add() {
    Units units = resident_;
    double next = kNever;
    for (Rest& rest : rests_) {
      rest.GoTo(next_ns_);
      units += rest.units();
      next = std::min(next, rest.EndsIn());
    }
    steps_.push_back({next_ns_, units});
    next_ns_ = next;
  }

  Units resident_;
  std::vector<Rest>& rests_;
  std::vector<UseOverTime::Step> steps_;
  double next_ns_ = 0;  // where the step begins that is added up next
};

/// The least delay of `mine` after which it fits beside `others` in `budget` at every time. Where
/// two steps collide there is no delay below the one after which they do not meet, so each
/// collision gives a bound, and the first delay without one is the least. Infinity: never. From
/// `within` on, a bound will do.
double LeastDelay(const UseOverTime& mine, Sum* others, Units budget, double within) {
  double delay = 0;
  for (bool moved = true; moved && (delay < kTick || delay < within);) {
    moved = false;
    size_t j = 0;
    for (size_t i = 0; i + 1 < mine.steps.size() && !moved; ++i) {  // behind the last it is parked
      const double begin = delay + mine.steps[i].from_ns;
      const double end = delay + mine.steps[i + 1].from_ns;
      while (others->EndOf(j) < begin + kTick) ++j;
      for (size_t k = j; others->At(k) != nullptr && others->At(k)->from_ns < end; ++k) {
        if (uint64_t{mine.steps[i].units} + others->At(k)->units <= budget) continue;
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
Units Budget(const Asked& asked, const Jobs& jobs) {
  const Units pool = CountedOn(asked.ledger, asked.config);
  const uint64_t least = std::min<uint64_t>(jobs.bases + jobs.transient, pool);
  const uint64_t steps = std::max(asked.config.budget_steps, 1u);
  return static_cast<Units>(least + (pool - least) * std::min(jobs.iterations, steps) / steps);
}

/// A delay below which `mine` would not fit beside the others, found by looking at a few times
/// only. 0: none was found, and nothing is said.
double ShortOf(const UseOverTime& mine, Jobs* jobs, Units budget) {
  constexpr size_t kLooks = 16;
  std::vector<Rest>& rests = jobs->under_way;
  const std::vector<UseOverTime::Step>& steps = mine.steps;
  const size_t apart = 1 + steps.size() / kLooks;
  for (size_t i = apart / 2; i + 1 < steps.size(); i += apart) {
    const double begin = steps[i].from_ns;
    const double end = steps[i + 1].from_ns;
    // Roundings, and what LeastDelay lets pass.
    if (end - begin < 8 * kTick) continue;
    const double in = end - 4 * kTick;
    uint64_t units = steps[i].units + jobs->resident;
    double until = kNever;
    for (Rest& rest : rests) {
      rest.GoTo(in);
      units += rest.units();
      until = std::min(until, rest.EndsIn());
    }
    if (units <= budget) continue;
    // However it is moved up to there, this step meets as much of the others.
    if (until - in > 4 * kTick) return until - begin - 4 * kTick;
  }
  return 0;
}

}  // namespace

double TimeShiftOpensIn(const Asked& asked, double within) {
  // Mostly so, and seen before anything is predicted.
  if (LanesAreTaken(asked)) return kNever;
  Jobs jobs(asked);
  // Where nothing can be predicted, one at a time.
  if (!jobs.predictable || (jobs.mine == nullptr && !jobs.under_way.empty())) return kNever;
  if (!jobs.others || jobs.mine == nullptr) return 0;
  const Units budget = Budget(asked, jobs);
  const UseOverTime& mine = jobs.mine->Whole();
  const double least = ShortOf(mine, &jobs, budget);
  if (least > 0 && least >= within) return least;
  Sum sum(&jobs);
  const double delay = LeastDelay(mine, &sum, budget, within);
  return delay < kTick ? 0 : delay;
}

bool TimeShiftMayOpen(const Asked& asked) {
  // With nobody else under way there is nothing to wait for, whatever was predicted. Else any delay
  // is too much, however long.
  return Occupants(asked.ledger, asked.request.job) == 0 || TimeShiftOpensIn(asked, 0) <= 0;
}

}  // namespace sluice::scheduler
