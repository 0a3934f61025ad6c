// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/profile/detect.h"

#include <algorithm>

namespace sluice::scheduler {

namespace {

/// match[i]: how many elements from i on equal those from 0 on (the Z function), in linear time.
std::vector<uint32_t> MatchesWithStart(const std::vector<uint64_t>& sequence) {
  const size_t n = sequence.size();
  std::vector<uint32_t> match(n, 0);
  size_t left = 0;
  size_t right = 0;
  for (size_t i = 1; i < n; ++i) {
    size_t length = i < right ? std::min<size_t>(right - i, match[i - left]) : 0;
    while (i + length < n && sequence[length] == sequence[i + length]) ++length;
    match[i] = static_cast<uint32_t>(length);
    if (i + length > right) {
      left = i;
      right = i + length;
    }
  }
  return match;
}

}  // namespace

std::vector<Repetition> Repetitions(std::span<const uint64_t> sequence, uint32_t max_period) {
  // Backwards, the suffix that repeats is a prefix: shifted by the period it equals itself.
  const std::vector<uint64_t> backwards(sequence.rbegin(), sequence.rend());
  const std::vector<uint32_t> match = MatchesWithStart(backwards);
  std::vector<Repetition> found;
  for (uint32_t period = 1; period <= max_period && period * 2 <= backwards.size(); ++period) {
    if (match[period] < period) continue;
    const Repetition repetition{period, match[period] + period};
    // "abab" repeats with 2 and with 4; 4 is worth listing only where it covers more than 2 does.
    const bool multiple = std::any_of(found.begin(), found.end(), [&](const Repetition& known) {
      return period % known.period == 0 && repetition.covered <= known.covered;
    });
    if (!multiple) found.push_back(repetition);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Repetition& a, const Repetition& b) { return a.covered > b.covered; });
  return found;
}

std::optional<Repetition> DetectPeriod(std::span<const uint64_t> sequence, uint32_t max_period,
                                       uint32_t min_covered) {
  const std::vector<Repetition> found = Repetitions(sequence, max_period);
  if (found.empty() || found.front().covered < min_covered) return std::nullopt;
  return found.front();
}

uint32_t UniqueWindow(std::span<const uint64_t> cycle, uint32_t at) {
  const size_t n = cycle.size();
  if (n == 0) return 0;
  // From the element before `at` backwards, twice around.
  std::vector<uint64_t> backwards(2 * n);
  for (size_t i = 0; i < 2 * n; ++i) backwards[i] = cycle[(at + 2 * n - 1 - i) % n];
  const std::vector<uint32_t> match = MatchesWithStart(backwards);
  uint32_t longest = 0;
  for (size_t i = 1; i < n; ++i) longest = std::max(longest, match[i]);
  return longest >= n ? 0 : longest + 1;
}

}  // namespace sluice::scheduler
