// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/buffers.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>

#include "scheduler/place/offline/changes.h"

namespace sluice::scheduler {
namespace {

Status Wrong(std::string message) { return {StatusCode::kInvalidArgument, std::move(message)}; }

}  // namespace

Status CheckBuffer(const Buffer& buffer, uint64_t* total) {
  if (buffer.lower >= buffer.upper) {
    return Wrong("upper: is " + std::to_string(buffer.upper) + ", but must be above lower (" +
                 std::to_string(buffer.lower) + ")");
  }
  if (buffer.size == 0) return Wrong("size: is 0, but must be at least 1");
  if (buffer.size >= kMaxTotalBytes - *total) {
    return Wrong("size: is " + std::to_string(buffer.size) +
                 ", but all sizes together must be below " + std::to_string(kMaxTotalBytes));
  }
  *total += buffer.size;
  return {};
}

Status CheckBuffers(std::span<const Buffer> buffers) {
  uint64_t total = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Status status = CheckBuffer(buffers[i], &total);
    if (!status.ok()) return status.Annotate("buffer " + std::to_string(i));
  }
  return {};
}

uint64_t PeakLoad(std::span<const Buffer> buffers) {
  uint64_t load = 0;
  uint64_t peak = 0;
  for (const Change& change : ChangesOf(buffers)) {
    if (change.begins) {
      load += buffers[change.buffer].size;
      peak = std::max(peak, load);
    } else {
      load -= buffers[change.buffer].size;
    }
  }
  return peak;
}

uint64_t Footprint(std::span<const Buffer> buffers, std::span<const uint64_t> offsets) {
  uint64_t top = 0;
  for (size_t i = 0; i < buffers.size(); ++i) top = std::max(top, offsets[i] + buffers[i].size);
  return top;
}

// A sweep over time with the live buffers by offset: each newcomer looks at its two neighbours.
Status ValidatePlacement(std::span<const Buffer> buffers, std::span<const uint64_t> offsets,
                         uint64_t capacity) {
  if (offsets.size() != buffers.size()) {
    return Wrong(std::to_string(offsets.size()) + " offsets for " + std::to_string(buffers.size()) +
                 " buffers");
  }
  std::map<uint64_t, size_t> live;  // by offset
  const auto overlap = [](size_t a, size_t b) {
    return Wrong("buffers " + std::to_string(std::min(a, b)) + " and " +
                 std::to_string(std::max(a, b)) + " overlap in time and space");
  };
  for (const Change& change : ChangesOf(buffers)) {
    const size_t i = change.buffer;
    if (!change.begins) {
      live.erase(offsets[i]);
      continue;
    }
    if (buffers[i].size > capacity || offsets[i] > capacity - buffers[i].size) {
      return Wrong("buffer " + std::to_string(i) + " at " + std::to_string(offsets[i]) + " with " +
                   std::to_string(buffers[i].size) + " bytes reaches above " +
                   std::to_string(capacity));
    }
    const auto above = live.lower_bound(offsets[i]);
    if (above != live.end() && above->first < offsets[i] + buffers[i].size) {
      return overlap(i, above->second);
    }
    if (above != live.begin()) {
      const auto below = std::prev(above);
      if (below->first + buffers[below->second].size > offsets[i]) return overlap(i, below->second);
    }
    live.emplace(offsets[i], i);
  }
  return {};
}

}  // namespace sluice::scheduler
