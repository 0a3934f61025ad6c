// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/sections.h"

#include <algorithm>

namespace sluice::scheduler {

// A section is maximal if something begins with it or after the last maximal one, and something
// ends with it.
Sections::Sections(std::span<const Buffer> buffers) {
  std::vector<uint64_t> begins;
  std::vector<uint64_t> ends;
  for (const Buffer& buffer : buffers) {
    begins.push_back(buffer.lower);
    ends.push_back(buffer.upper);
  }
  std::sort(begins.begin(), begins.end());
  std::sort(ends.begin(), ends.end());
  for (size_t b = 0, e = 0; e < ends.size();) {
    bool fresh = false;
    while (b < begins.size() && begins[b] < ends[e]) {
      ++b;
      fresh = true;
    }
    if (fresh) time.push_back(begins[b - 1]);  // the last begin before a run of ends
    ++e;
  }
  load.assign(time.size(), 0);
  const auto at = [&](uint64_t change) {
    return static_cast<uint32_t>(std::lower_bound(time.begin(), time.end(), change) - time.begin());
  };
  for (const Buffer& buffer : buffers) {
    const Range range{at(buffer.lower), at(buffer.upper)};
    for (uint32_t s = range.first; s < range.last; ++s) load[s] += buffer.size;
    of.push_back(range);
  }
}

}  // namespace sluice::scheduler
