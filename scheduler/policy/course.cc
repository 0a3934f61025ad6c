// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/policy/course.h"

#include <algorithm>
#include <limits>

namespace sluice::scheduler {

namespace {

constexpr double kNotYet = -1;
constexpr double kNever = std::numeric_limits<double>::infinity();
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
  // a queue of falling amounts, as for the maximum of a sliding window.
  std::vector<size_t> alive;
  alive.reserve(lifespans.size());
  size_t first = 0;  // what is before it in `alive` has ended
  use.steps.reserve(2 * lifespans.size() + 1);
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
      while (alive.size() > first && lifespans[alive.back()].units <= lifespans[next].units) {
        alive.pop_back();
      }
      alive.push_back(next++);
    }
    while (first < alive.size() && lifespans[alive[first]].until_ns <= now) ++first;
    const bool any = first < alive.size();
    add(now, any ? std::max(least, lifespans[alive[first]].units) : least);
    if (!any && next == lifespans.size()) return use;
    const double ends = any ? lifespans[alive[first]].until_ns : kNever;
    now = next < lifespans.size() ? std::min(ends, lifespans[next].from_ns) : ends;
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
  }
  measured_ = expected_;
  whole_ = OverTime(Merge(expected_, peak_ / kSteps), base_);
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
  whole_ = OverTime(Merge(expected_, peak_ / kSteps), base_);
}

double Course::Along(double now_ns) const {
  double along = std::max(now_ns - opened_ns_, expected_[passed_].from_ns);
  if (passed_ + 1 < expected_.size()) along = std::min(along, expected_[passed_ + 1].from_ns);
  // What the GPU has passed is over, whenever that was expected.
  return reached_ > 0 ? std::max(along, expected_[reached_ - 1].until_ns) : along;
}

const Course* Outlook::Of(JobId job) const {
  if (courses == nullptr) return nullptr;
  const auto found = courses->find(job);
  return found == courses->end() || found->second.gates() == 0 ? nullptr : &found->second;
}

}  // namespace sluice::scheduler
