// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/audit/brute.h"

#include <algorithm>
#include <numeric>

namespace sluice::scheduler::audit {

namespace {

/// The runs of set flags, longest first: {length, offset}.
std::vector<std::pair<Units, Units>> RunsOf(const std::vector<bool>& units) {
  std::vector<std::pair<Units, Units>> runs;
  for (Units at = 0; at < units.size(); ++at) {
    if (!units[at]) continue;
    Units end = at;
    while (end < units.size() && units[end]) ++end;
    runs.emplace_back(end - at, at);
    at = end;
  }
  std::sort(runs.rbegin(), runs.rend());
  return runs;
}

/// With the k longest runs: when every one of them is down to piece - 1 units, is the need met?
size_t LongestRunsFor(const std::vector<std::pair<Units, Units>>& runs, Units need, Units piece) {
  const Units longest_ask = std::min(need, piece);
  uint64_t sum = 0;
  for (size_t k = 1; k <= runs.size(); ++k) {
    sum += runs[k - 1].first;
    if (sum >= need + (k - 1) * (uint64_t{longest_ask} - 1)) return k;
  }
  return 0;
}

/// Without what any other one may keep.
std::vector<bool> UsableBy(const Party& user, const std::vector<const Party*>& all,
                           std::vector<bool> available) {
  for (const Party* other : all) {
    if (other == &user || !other->returns) continue;
    for (size_t unit = 0; unit < other->may_keep.size(); ++unit) {
      if (other->may_keep[unit]) available[unit] = false;
    }
  }
  return available;
}

bool Serve(const std::vector<const Party*>& order, std::vector<bool> available, bool in_sums) {
  for (const Party* party : order) {
    if (party->need > 0) {
      const auto runs = RunsOf(UsableBy(*party, order, available));
      const size_t k = LongestRunsFor(runs, party->need, in_sums ? 1 : party->piece);
      if (k == 0) return false;
      if (!party->returns) {  // what it takes never comes back: the tightest run, or all that it
                              // needs
        if (k == 1) {
          const auto tight = std::find_if(runs.rbegin(), runs.rend(), [party](const auto& run) {
            return run.first >= party->need;
          });
          std::fill_n(available.begin() + tight->second, party->need, false);
        } else {
          for (size_t i = 0; i < k; ++i) {
            std::fill_n(available.begin() + runs[i].second, runs[i].first, false);
          }
        }
      }
    }
    if (!party->returns) continue;
    for (size_t unit = 0; unit < available.size(); ++unit) {
      if (party->gives_back[unit]) available[unit] = true;
    }
  }
  return true;
}

}  // namespace

bool SomeOrderCompletes(const std::vector<bool>& available, const std::vector<Party>& parties,
                        bool in_sums) {
  std::vector<size_t> index(parties.size());
  std::iota(index.begin(), index.end(), size_t{0});
  do {
    std::vector<const Party*> order;
    for (const size_t i : index) order.push_back(&parties[i]);
    if (Serve(order, available, in_sums)) return true;
  } while (std::next_permutation(index.begin(), index.end()));
  return false;
}

}  // namespace sluice::scheduler::audit
