// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/profile/held.h"

#include <algorithm>
#include <deque>

namespace sluice::scheduler {

std::vector<uint64_t> HeldUnderCredit(const Profile& profile, uint64_t credit_ns) {
  if (!profile.timed || profile.launch_ns.size() < profile.period) return {};
  std::vector<uint64_t> held(profile.period);
  // Launches of the window that may be its largest, largest first: each later one is smaller.
  std::deque<uint32_t> largest;
  uint64_t ahead_ns = 0;  // GPU time of the launches behind n in the window
  uint32_t end = 0;       // of the window
  for (uint32_t n = 0; n < profile.period; ++n) {
    while (end < profile.period && (end <= n || ahead_ns + profile.launch_ns[end] <= credit_ns)) {
      if (end > n) ahead_ns += profile.launch_ns[end];
      while (!largest.empty() && profile.max_live[largest.back()] <= profile.max_live[end]) {
        largest.pop_back();
      }
      largest.push_back(end++);
    }
    held[n] = profile.max_live[largest.front()];
    if (largest.front() == n) largest.pop_front();
    if (n + 1 < end) ahead_ns -= profile.launch_ns[n + 1];
  }
  return held;
}

double MeanHeld(const Profile& profile, const std::vector<uint64_t>& held) {
  double sum = 0;
  double time = 0;
  for (size_t n = 0; n < held.size(); ++n) {
    sum += static_cast<double>(held[n]) * profile.launch_ns[n];
    time += profile.launch_ns[n];
  }
  return time > 0 ? sum / time : 0;
}

}  // namespace sluice::scheduler
