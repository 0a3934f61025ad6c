// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/papers_halves.h"

#include <algorithm>
#include <numeric>

namespace sluice::bench {

uint64_t HalvesNeed(const scheduler::Profile& profile, size_t cut) {
  const size_t count = profile.max_live.size();
  const auto begin = profile.launch_ns.begin();
  const auto middle = begin + static_cast<std::ptrdiff_t>(cut);
  const double first_ns = std::accumulate(begin, middle, 0.0);
  const double second_ns = std::accumulate(middle, profile.launch_ns.end(), 0.0);
  if (cut == 0 || cut >= count) return 2 * profile.peak_bytes;
  // Two places that go through their groups, each launch a part of its group's time.
  size_t up = 0;
  size_t down = cut;
  double up_part = profile.launch_ns[up] / first_ns;
  double down_part = profile.launch_ns[down] / second_ns;
  uint64_t most = 0;
  constexpr double kSame = 1e-12;  // what rounding may part
  while (true) {
    most = std::max(most, profile.max_live[up] + profile.max_live[down]);
    const double now = std::min(up_part, down_part) + kSame;
    const bool up_ends = up_part <= now;
    const bool down_ends = down_part <= now;
    if ((up_ends && up + 1 == cut) || (down_ends && down + 1 == count)) return most;
    if (up_ends) up_part += profile.launch_ns[++up] / first_ns;
    if (down_ends) down_part += profile.launch_ns[++down] / second_ns;
  }
}

uint64_t HalvesNeedAtBest(const scheduler::Profile& profile, size_t backward) {
  const auto peak = std::max_element(profile.max_live.begin(), profile.max_live.end());
  return std::min(HalvesNeed(profile, static_cast<size_t>(peak - profile.max_live.begin()) + 1),
                  HalvesNeed(profile, backward));
}

}  // namespace sluice::bench
