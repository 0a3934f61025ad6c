// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/papers_table.h"

namespace sluice::bench {

/// Over the least pool of so many jobs: all bases and one peak.
inline constexpr std::array<double, 4> kMorePools = {1.0, 1.1, 1.25, 1.5};

/// Equal jobs in the least pool of `pool_of` of them and larger ones.
struct MoreJobsRow {
  char regime = 'A';  // frontier_regimes.h: large or small batches
  std::string model;
  uint64_t batch = 0;
  size_t jobs = 2;
  size_t pool_of = 4;
  bool by_turns = false;       // bases may be in host memory
  size_t bases_of_others = 0;  // the pools are smaller by so many bases
  std::array<double, 4> at{};  // throughput, by pool
};

/// Beside them how much less three and four jobs get than two in the same bytes: the goals are of
/// those whose bases may be in host memory by turns, and what the others get is said.
PaperTable MoreJobsTable(const std::vector<MoreJobsRow>& rows);

}  // namespace sluice::bench
