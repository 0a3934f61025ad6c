// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/policy/course.h"

#include <algorithm>
#include <deque>

namespace sluice::scheduler {

namespace {

constexpr double kNotYet = -1;
/// What is predicted is told apart by this part of the peak.
constexpr Units kSteps = 128;

}  // namespace

std::vector<Lifespan> Merge(const std::vector<Lifespan>& lifespans, Units within) {
  std::vector<Lifespan> merged;
  merged.reserve(lifespans.size());
  Units first = 0;  // of those that the last one stands for
  for (const Lifespan& span : lifespans) {
    const Units apart = span.units > first ? span.units - first : first - span.units;
    if (merged.empty() || apart > within) {
      merged.push_back(span);
      first = span.units;
      continue;
    }
    merged.back().until_ns = span.until_ns;
    merged.back().units = std::max(merged.back().units, span.units);
  }
  return merged;
}

UseOverTime OverTime(const std::vector<Lifespan>& lifespans, Units least) {
  UseOverTime use;
  // Those alive at a time are a run of the list, and only those that no later one covers matter:
  // a deque of falling amounts, as for the maximum of a sliding window.
  std::deque<size_t> alive;
  size_t next = 0;
  double now = 0;
  const auto add = [&use](double ns, Units units) {
    if (!use.steps.empty() && use.steps.back().units == units) return;
    if (!use.steps.empty() && use.steps.back().from_ns >= ns) {
      use.steps.back().units = std::max(use.steps.back().units, units);
      return;
    }
    use.steps.push_back({ns, units});
  };
  while (true) {
    while (next < lifespans.size() && lifespans[next].from_ns <= now) {
      while (!alive.empty() && lifespans[alive.back()].units <= lifespans[next].units) {
        alive.pop_back();
      }
      alive.push_back(next++);
    }
    while (!alive.empty() && lifespans[alive.front()].until_ns <= now) alive.pop_front();
    add(now, alive.empty() ? least : std::max(least, lifespans[alive.front()].units));
    if (alive.empty() && next == lifespans.size()) return use;
    if (alive.empty()) {
      now = lifespans[next].from_ns;
    } else {
      now = lifespans[alive.front()].until_ns;
      if (next < lifespans.size()) now = std::min(now, lifespans[next].from_ns);
    }
  }
}

Course::Course(const CyclePlan& plan, const std::vector<double>& gate_ns, double iteration_ns,
               Units base)
    : base_(base), peak_(plan.peak_units) {
  const size_t count = std::min(plan.gates.size(), gate_ns.size());
  for (size_t k = 0; k < count; ++k) {
    // The host is ahead of its GPU by its credit.
    const double from = std::max(0.0, gate_ns[k] - static_cast<double>(plan.credit_ns));
    const double until = k + 1 < count ? gate_ns[k + 1] : iteration_ns;
    launches_.push_back(plan.gates[k].launch);
    parts_.push_back(iteration_ns > 0 ? gate_ns[k] / iteration_ns : 0);
    expected_.push_back({from, std::max(from, until), plan.gates[k].need_units});
  }
  measured_ = expected_;
  fresh_ = OverTime(Merge(expected_, peak_ / kSteps), base_);
}

void Course::Open(double now_ns) {
  open_ = true;
  opened_ns_ = now_ns;
  passed_ = reached_ = 0;
  for (Lifespan& span : measured_) span.from_ns = span.until_ns = kNotYet;
  if (!measured_.empty()) measured_[0].from_ns = 0;
}

void Course::Pass(size_t gate, double now_ns) {
  if (!open_ || gate >= expected_.size() || gate < passed_) return;
  passed_ = gate;
  measured_[gate].from_ns = now_ns - opened_ns_;
}

bool Course::Reach(uint32_t launches, double now_ns) {
  if (!open_) return false;
  const size_t before = reached_;
  while (reached_ + 1 < launches_.size() && launches_[reached_ + 1] <= launches) {
    measured_[reached_].until_ns = now_ns - opened_ns_;
    ++reached_;
  }
  return reached_ != before;
}

void Course::End(double now_ns) {
  if (!open_) return;
  open_ = false;
  ++iterations_;
  // Where it goes on without a drain its GPU is behind, by no more than its credit.
  for (size_t k = reached_; k < measured_.size(); ++k) measured_[k].until_ns = now_ns - opened_ns_;
  // Half of the way: one iteration beside a job that has just come is no rule.
  const auto follow = [](double* expected, double measured) {
    if (measured >= 0) *expected += (measured - *expected) / 2;
  };
  double from = 0;
  double until = 0;
  for (size_t k = 0; k < expected_.size(); ++k) {
    follow(&expected_[k].from_ns, measured_[k].from_ns);
    follow(&expected_[k].until_ns, measured_[k].until_ns);
    from = expected_[k].from_ns = std::max(from, expected_[k].from_ns);
    until = expected_[k].until_ns = std::max({until, from, expected_[k].until_ns});
  }
  fresh_ = OverTime(Merge(expected_, peak_ / kSteps), base_);
}

UseOverTime Course::Ahead(double now_ns) const {
  // Where it stands on its own time: as long as it is late, time stands still.
  double at = std::max(now_ns - opened_ns_, expected_[passed_].from_ns);
  if (passed_ + 1 < expected_.size()) at = std::min(at, expected_[passed_ + 1].from_ns);
  std::vector<Lifespan> rest;
  rest.reserve(expected_.size() - reached_);
  for (size_t k = reached_; k < expected_.size(); ++k) {
    Lifespan span = expected_[k];
    span.from_ns = k <= passed_ ? 0 : std::max(0.0, span.from_ns - at);
    span.until_ns = std::max(span.from_ns, span.until_ns - at);
    rest.push_back(span);
  }
  return OverTime(Merge(rest, peak_ / kSteps), base_);
}

const Course* Outlook::Of(JobId job) const {
  if (courses == nullptr) return nullptr;
  const auto found = courses->find(job);
  return found == courses->end() || found->second.gates() == 0 ? nullptr : &found->second;
}

}  // namespace sluice::scheduler
