// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/changes.h"

#include <algorithm>
#include <tuple>

namespace sluice::scheduler {

std::vector<Change> ChangesOf(std::span<const Buffer> buffers) {
  std::vector<Change> changes;
  changes.reserve(2 * buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    changes.push_back({buffers[i].lower, true, i});
    changes.push_back({buffers[i].upper, false, i});
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return std::tie(a.time, a.begins, a.buffer) < std::tie(b.time, b.begins, b.buffer);
  });
  return changes;
}

}  // namespace sluice::scheduler
