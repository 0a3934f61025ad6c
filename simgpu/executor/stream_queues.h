// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "simgpu/streams/channel.h"

namespace sluice::simgpu {

/// The order of a context's operations: one queue per stream, first in, first out; the legacy
/// stream is a barrier in both directions with every blocking stream. Pure: knows nothing of what
/// operations do.
class StreamQueues {
 public:
  using Ready = std::function<bool(const Command&)>;

  StreamQueues();

  /// Operations arrive in the order of their ids.
  void Push(const Command& command);

  /// The runnable head that was issued first, null if there is none. `ready` decides about waits.
  /// Heads for which `costs_time` is false come first, so that a mark or an event behind finished
  /// work does not wait for the next kernel.
  const Command* Pick(const Ready& ready, const Ready& costs_time) const;

  /// Removes the head of a stream, which must exist.
  void Pop(uint32_t stream);

  bool empty() const { return active_.empty(); }

 private:
  struct Item {
    Command command;
    uint64_t after_legacy;  // id of the legacy operation that must be over first; 0: none
  };
  std::vector<std::deque<Item>> queue_;
  std::vector<uint32_t> active_;  // streams with something queued
  uint64_t last_legacy_ = 0;
  uint64_t legacy_done_ = 0;
};

}  // namespace sluice::simgpu
