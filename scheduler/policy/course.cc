// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/policy/course.h"

#include <algorithm>
#include <deque>
#include <limits>

namespace sluice::scheduler {

namespace {

constexpr double kNotYet = -1;
/// What is predicted is told apart by this part of the peak.
constexpr Units kSteps = 128;

std::vector<Units> UnitsOf(const std::vector<Lifespan>& lifespans) {
  std::vector<Units> units;
  units.reserve(lifespans.size());
  for (const Lifespan& span : lifespans) units.push_back(span.units);
  return units;
}

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

GateGroup GroupAt(const std::vector<Units>& units, Units base, Units peak, size_t gate,
                  uint32_t groups_per_peak) {
  const Units split = std::max<Units>(1, peak / std::max(groups_per_peak, 1u));
  GateGroup group;
  for (size_t k = 0; k < units.size(); ++k) {
    const Units at = units[k];
    const bool grown = at >= units[group.first] + split;
    if (k > group.first && (grown || at + split <= group.high_water)) {
      if (k > gate) break;
      group = {k, at, false};
    }
    group.high_water = std::max(group.high_water, at);
  }
  group.takes = group.high_water > (group.first == 0 ? base : units[group.first - 1]);
  return group;
}

Course::Course(const CyclePlan& plan, const std::vector<double>& gate_ns, double iteration_ns,
               Units base, uint32_t groups_per_peak)
    : groups_per_peak_(groups_per_peak), base_(base), peak_(plan.peak_units) {
  const size_t count = std::min(plan.gates.size(), gate_ns.size());
  for (size_t k = 0; k < count; ++k) {
    // The host is ahead of its GPU by its credit.
    const double from = std::max(0.0, gate_ns[k] - static_cast<double>(plan.credit_ns));
    const double until = k + 1 < count ? gate_ns[k + 1] : iteration_ns;
    launches_.push_back(plan.gates[k].launch);
    parts_.push_back(iteration_ns > 0 ? gate_ns[k] / iteration_ns : 0);
    expected_.push_back({from, std::max(from, until), plan.gates[k].need_units});
    if (plan.gates[k].need_units > expected_[highest_].units) highest_ = k;
  }
  measured_ = expected_;
  fresh_ = OverTime(Merge(expected_, peak_ / kSteps), base_);
  const std::vector<Units> units = UnitsOf(expected_);
  for (size_t k = 0; k < count; ++k) {
    groups_.push_back(GroupAt(units, base_, peak_, k, groups_per_peak_));
  }
}

GateGroup Course::GroupOf(size_t gate, uint32_t groups_per_peak) const {
  if (groups_per_peak == groups_per_peak_) return groups_[gate];
  return GroupAt(UnitsOf(expected_), base_, peak_, gate, groups_per_peak);
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

/// As long as it is late, time stands still.
double Course::At(double now_ns) const {
  const double at = std::max(now_ns - opened_ns_, expected_[passed_].from_ns);
  return passed_ + 1 < expected_.size() ? std::min(at, expected_[passed_ + 1].from_ns) : at;
}

UseOverTime Course::Ahead(double now_ns) const {
  const double at = At(now_ns);
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

Course::Least Course::AheadAt(double now_ns, double in_ns) const {
  const double at = At(now_ns);
  const double then = at + in_ns;
  const auto passed = expected_.begin() + static_cast<std::ptrdiff_t>(passed_);
  // Those of the time are a run of the list: the last one that has begun, and all before it that
  // have not ended.
  const auto last =
      std::upper_bound(passed + 1, expected_.end(), then,
                       [](double ns, const Lifespan& span) { return ns < span.from_ns; }) -
      1;
  Least least{base_, std::numeric_limits<double>::infinity()};
  const auto see = [&](const Lifespan& span) {
    if (span.until_ns > then && span.units > least.units) {
      least = {span.units, span.until_ns - at};
    }
  };
  const size_t gate = static_cast<size_t>(last - expected_.begin());
  if (gate < reached_) return least;
  see(*last);
  if (highest_ >= reached_ && highest_ <= gate) see(expected_[highest_]);
  // Behind the peak the first of them holds the most.
  if (highest_ < gate) {
    const auto from = expected_.begin() + static_cast<std::ptrdiff_t>(std::max(reached_, highest_));
    see(*std::lower_bound(from, last, then,
                          [](const Lifespan& span, double ns) { return span.until_ns <= ns; }));
  }
  return least;
}

const Course* Outlook::Of(JobId job) const {
  if (courses == nullptr) return nullptr;
  const auto found = courses->find(job);
  return found == courses->end() || found->second.gates() == 0 ? nullptr : &found->second;
}

}  // namespace sluice::scheduler
