// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/policy/forecast.h"

#include <algorithm>

namespace sluice::scheduler {

RestOfIteration::RestOfIteration(const Course& course, double now_ns)
    : steps_(&course.Whole().steps), along_ns_(course.Along(now_ns)) {
  const auto next = std::partition_point(
      steps_->begin() + 1, steps_->end(),
      [this](const UseOverTime::Step& step) { return step.from_ns - along_ns_ <= 0; });
  at_ = now_at_ = static_cast<size_t>(next - steps_->begin()) - 1;
}

void Forecast::Look() {
  known_ = true;
  jobs_.under_way.reserve(ledger_.jobs().size());
  for (const Job& job : ledger_.jobs()) {
    const Course* course = outlook_.Of(job.id);
    if (course == nullptr) {
      jobs_.bases += job.held();
    } else {
      jobs_.iterations = std::min(jobs_.iterations, course->iterations());
      jobs_.bases += course->base();
      jobs_.transient =
          std::max(jobs_.transient, course->peak() - std::min(course->peak(), course->base()));
    }
    if (!job.under_way()) {
      jobs_.resident += job.held();
    } else if (course == nullptr || !course->open()) {
      jobs_.predictable = false;
    } else {
      jobs_.under_way.emplace_back(*course, outlook_.now_ns);
    }
  }
}

void Forecast::Add() {
  if (steps_.empty()) {
    constexpr size_t kFewSteps = 32;
    steps_.reserve(kFewSteps);
    ahead_ = jobs().under_way;
    for (RestOfIteration& rest : ahead_) rest.GoToNow();
  }
  Units units = 0;
  double next = std::numeric_limits<double>::infinity();
  for (RestOfIteration& rest : ahead_) {
    rest.GoTo(next_ns_);
    units += rest.units();
    next = std::min(next, rest.EndsIn());
  }
  steps_.push_back({next_ns_, units});
  next_ns_ = next;
}

}  // namespace sluice::scheduler
