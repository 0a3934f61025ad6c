// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/policy/forecast.h"

#include <algorithm>

namespace sluice::scheduler {

RestOfIteration::RestOfIteration(const Course& course, double now_ns)
    : last_(&course.Whole().steps.back()), along_ns_(course.Along(now_ns)) {
  const UseOverTime::Step* first = course.Whole().steps.data();
  const auto* next = std::partition_point(
      first + 1, last_ + 1,
      [this](const UseOverTime::Step& step) { return step.from_ns - along_ns_ <= 0; });
  now_at_ = next - 1;
  GoToNow();
}

void Forecast::Look() {
  known_ = true;
  rests_.reserve(ledger_.jobs().size());
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
      rests_.emplace_back(*course, outlook_.now_ns);
    }
  }
  jobs_.change = !rests_.empty();
}

Forecast::Held Forecast::Together(std::vector<RestOfIteration>* rests, double in_ns) {
  Held held;
  for (RestOfIteration& rest : *rests) {
    rest.GoTo(in_ns);
    held.units += rest.units();
    held.until_ns = std::min(held.until_ns, rest.EndsIn());
  }
  return held;
}

Forecast::Held Forecast::In(double ns) {
  if (!known_) Look();
  return Together(&rests_, ns);
}

void Forecast::GoToNow() {
  for (RestOfIteration& rest : rests_) rest.GoToNow();
}

void Forecast::Add() {
  if (steps_.empty()) {
    constexpr size_t kFewSteps = 32;
    steps_.reserve(kFewSteps);
    if (!known_) Look();
    ahead_ = rests_;
    for (RestOfIteration& rest : ahead_) rest.GoToNow();
  }
  const Held held = Together(&ahead_, next_ns_);
  steps_.push_back({next_ns_, held.units});
  next_ns_ = held.until_ns;
}

}  // namespace sluice::scheduler
