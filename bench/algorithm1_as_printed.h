// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace sluice::bench {

/// A job as Waterwave's Algorithm 1 sees it: node groups that take memory, then some that give it
/// back.
struct GroupedJob {
  int64_t growing = 0;  // numANG
  int64_t groups = 0;   // numNG
  uint64_t peak_bytes = 0;
};

/// The algorithm's output: what it wrote to each place of its two streams, in order. Groups at the
/// same place are to run side by side.
struct PrintedPlan {
  struct Group {
    size_t job = 0;
    int64_t group = 0;
  };
  using Stream = std::map<int64_t, std::vector<Group>>;

  int64_t p = 0;  // groups of the second job beside growing ones of the first
  Stream av;
  Stream dv;
};

/// Waterwave's Algorithm 1 (Shi et al., 4.4) as it is printed, a baseline to be looked at and none
/// to run jobs by. Read kindly: `to` leaves out its end where it counts groups, and a counter that
/// stands in a loop's head and in its body is stepped once. Jobs in the order of their groups'
/// sizes, the largest first; `split_bytes` above 0.
PrintedPlan AlgorithmOneAsPrinted(const std::vector<GroupedJob>& jobs, uint64_t limit_bytes,
                                  uint64_t split_bytes);

/// Why a plan is none; what a schedule has none of.
enum class PlanFault : uint8_t {
  kNoSuchPlace,   // before the beginning of a stream
  kNoSuchGroup,   // a group that the job does not have
  kOverwritten,   // two groups at one place of one stream
  kBesideItself,  // two groups of one job in one pair
  kOutOfOrder,    // a group before one that it follows in its job
  kLeftOut,       // a group is nowhere
};
std::string FaultText(PlanFault fault);
std::set<PlanFault> FaultsOf(const PrintedPlan& plan, const std::vector<GroupedJob>& jobs);

}  // namespace sluice::bench
