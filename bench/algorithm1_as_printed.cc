// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/algorithm1_as_printed.h"

#include <algorithm>
#include <array>

namespace sluice::bench {

PrintedPlan AlgorithmOneAsPrinted(const std::vector<GroupedJob>& jobs, uint64_t limit_bytes,
                                  uint64_t split_bytes) {
  PrintedPlan plan;
  if (jobs.empty()) return plan;
  const GroupedJob& first = jobs.front();
  const auto split = static_cast<int64_t>(split_bytes);
  const int64_t room = static_cast<int64_t>(limit_bytes) - static_cast<int64_t>(first.peak_bytes);
  plan.p = room / split - 1;
  int64_t offset = first.growing - plan.p;
  int64_t idx1 = 0;
  int64_t idx2 = first.growing;
  for (size_t j = 0; j < jobs.size(); ++j) {
    const bool second = j == 1;
    const bool last = j + 1 == jobs.size();
    const int64_t s = second ? plan.p : 0;
    if (second) {
      for (int64_t i = 0; i < s; ++i) plan.dv[offset++].push_back({j, i});
    }
    int64_t i = s;
    for (; i < jobs[j].growing; ++i) plan.av[idx1++].push_back({j, i});
    for (; i < jobs[j].groups; ++i) {
      if (last && idx2 > idx1) {
        plan.av[idx1++].push_back({j, i});
      } else {
        plan.dv[idx2++].push_back({j, i});
      }
    }
  }
  return plan;
}

std::string FaultText(PlanFault fault) {
  constexpr std::array<const char*, 6> kTexts = {
      "a place before the beginning", "a group that is none",    "a place taken twice",
      "a job beside itself",          "a group before its turn", "a group left out"};
  return kTexts[static_cast<size_t>(fault)];
}

namespace {

struct Place {
  int64_t pair = 0;
  int64_t group = 0;
};

/// In the order of the plan's pairs.
std::vector<Place> PlacesOf(const PrintedPlan& plan, size_t job) {
  std::vector<Place> places;
  for (const PrintedPlan::Stream* stream : {&plan.av, &plan.dv}) {
    for (const auto& [pair, groups] : *stream) {
      for (const PrintedPlan::Group& group : groups) {
        if (group.job == job) places.push_back({pair, group.group});
      }
    }
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return a.pair != b.pair ? a.pair < b.pair : a.group < b.group;
  });
  return places;
}

}  // namespace

std::set<PlanFault> FaultsOf(const PrintedPlan& plan, const std::vector<GroupedJob>& jobs) {
  std::set<PlanFault> faults;
  for (const PrintedPlan::Stream* stream : {&plan.av, &plan.dv}) {
    for (const auto& [pair, groups] : *stream) {
      if (pair < 0) faults.insert(PlanFault::kNoSuchPlace);
      if (groups.size() > 1) faults.insert(PlanFault::kOverwritten);
    }
  }
  for (size_t j = 0; j < jobs.size(); ++j) {
    const std::vector<Place> places = PlacesOf(plan, j);
    std::set<int64_t> seen;
    for (size_t k = 0; k < places.size(); ++k) {
      const int64_t group = places[k].group;
      if (group < 0 || group >= jobs[j].groups) faults.insert(PlanFault::kNoSuchGroup);
      seen.insert(group);
      if (k == 0) continue;
      if (places[k].pair == places[k - 1].pair) faults.insert(PlanFault::kBesideItself);
      if (group < places[k - 1].group) faults.insert(PlanFault::kOutOfOrder);
    }
    for (int64_t group = 0; group < jobs[j].groups; ++group) {
      if (!seen.contains(group)) faults.insert(PlanFault::kLeftOut);
    }
  }
  return faults;
}

}  // namespace sluice::bench
