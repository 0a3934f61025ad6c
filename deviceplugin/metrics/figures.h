// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace sluice::deviceplugin {

/// How often something took how long. For several threads; counts never fall.
class TimeCounts {
 public:
  /// Upper bounds, ascending; what is above all of them is counted last.
  static constexpr std::array<uint64_t, 10> kBoundsNs = {
      500'000,    1'000'000,   2'500'000,   5'000'000,     10'000'000,
      25'000'000, 100'000'000, 250'000'000, 1'000'000'000, 10'000'000'000};

  void Add(uint64_t ns) {
    size_t bucket = 0;
    while (bucket < kBoundsNs.size() && ns > kBoundsNs[bucket]) ++bucket;
    counts_[bucket].fetch_add(1, std::memory_order_relaxed);
    sum_ns_.fetch_add(ns, std::memory_order_relaxed);
  }
  uint64_t count(size_t bucket) const { return counts_[bucket].load(std::memory_order_relaxed); }
  uint64_t sum_ns() const { return sum_ns_.load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<uint64_t>, kBoundsNs.size() + 1> counts_ = {};
  std::atomic<uint64_t> sum_ns_ = 0;
};

/// What the plugin did, counted where it is done and shown by plugin_metrics.h. For several
/// threads; it outlives them.
struct Figures {
  std::atomic<bool> registered = false;  // kubelet knows it at the moment
  std::atomic<uint64_t> registrations = 0;
  std::atomic<uint64_t> registrations_failed = 0;
  std::atomic<uint64_t> allocations_granted = 0;
  std::atomic<uint64_t> allocations_refused = 0;  // it cannot be, as kubelet wanted it
  std::atomic<uint64_t> allocations_failed = 0;   // the system's fault
  TimeCounts allocate;
  std::atomic<uint64_t> events_written = 0;  // on pods and on the node
  std::atomic<uint64_t> events_failed = 0;
};

}  // namespace sluice::deviceplugin
