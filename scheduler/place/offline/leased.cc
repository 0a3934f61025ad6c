// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/leased.h"

#include <iterator>
#include <map>

#include "scheduler/place/offline/changes.h"

namespace sluice::scheduler {
namespace {

// What lives now, from below. Its members do not overlap, so that only the two neighbours of a
// buffer can hold units of its: its first and its last one.
class Live {
 public:
  explicit Live(uint64_t unit_bytes) : unit_(unit_bytes) {}

  void Add(uint64_t offset, uint64_t size) { ends_.emplace(offset, offset + size); }
  void Remove(uint64_t offset) { ends_.erase(offset); }

  /// Units that [offset, offset + size), which is not in here, would hold alone.
  uint64_t UnitsAloneOf(uint64_t offset, uint64_t size) const {
    const uint64_t first = offset / unit_;
    const uint64_t last = (offset + size - 1) / unit_;
    const auto above = ends_.lower_bound(offset);
    const bool shares_first =
        above != ends_.begin() && (std::prev(above)->second - 1) / unit_ == first;
    const bool shares_last = above != ends_.end() && above->first / unit_ == last;
    if (first == last) return shares_first || shares_last ? 0 : 1;
    return last - first + 1 - (shares_first ? 1 : 0) - (shares_last ? 1 : 0);
  }

 private:
  uint64_t unit_;
  std::map<uint64_t, uint64_t> ends_;  // by offset
};

}  // namespace

double LeasedIntegral(std::span<const Buffer> buffers, std::span<const uint64_t> offsets,
                      uint64_t unit_bytes) {
  Live live(unit_bytes);
  double sum = 0;
  uint64_t units = 0;
  uint64_t before = 0;
  for (const Change& change : ChangesOf(buffers)) {
    sum += static_cast<double>(units) * static_cast<double>(change.time - before);
    before = change.time;
    const uint64_t offset = offsets[change.buffer];
    const uint64_t size = buffers[change.buffer].size;
    if (change.begins) {
      units += live.UnitsAloneOf(offset, size);
      live.Add(offset, size);
    } else {
      live.Remove(offset);
      units -= live.UnitsAloneOf(offset, size);
    }
  }
  return sum * static_cast<double>(unit_bytes);
}

double LeastLeasedIntegral(std::span<const Buffer> buffers, uint64_t unit_bytes) {
  double sum = 0;
  uint64_t load = 0;
  uint64_t before = 0;
  for (const Change& change : ChangesOf(buffers)) {
    const uint64_t units = load / unit_bytes + (load % unit_bytes == 0 ? 0 : 1);
    sum += static_cast<double>(units) * static_cast<double>(change.time - before);
    before = change.time;
    const uint64_t size = buffers[change.buffer].size;
    load = change.begins ? load + size : load - size;
  }
  return sum * static_cast<double>(unit_bytes);
}

}  // namespace sluice::scheduler
