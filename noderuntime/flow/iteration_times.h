// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::flow {

/// When a job's iterations behind gates end, and how long they take by the clock without what the
/// job waited for memory. The shortest one met the fewest others on the GPU. Nanoseconds.
class IterationTimes {
 public:
  void Open(uint64_t now_ns) {
    open_ = true;
    opened_ns_ = now_ns;
    waited_ns_ = 0;
  }
  /// Inside an iteration; before its gate 0 it counts for nothing.
  void Waited(uint64_t ns) { waited_ns_ += ns; }
  void End(uint64_t now_ns) {
    ++ended_;
    last_end_ns_ = now_ns;
    if (!open_) return;
    open_ = false;
    const uint64_t took_ns = now_ns - opened_ns_;
    const uint64_t own_ns = std::max<uint64_t>(1, took_ns - std::min(took_ns, waited_ns_));
    shortest_ns_ = shortest_ns_ == 0 ? own_ns : std::min(shortest_ns_, own_ns);
  }
  /// It has another profile: what it takes is to be measured anew.
  void Forget() {
    open_ = false;
    shortest_ns_ = 0;
  }

  uint64_t ended() const { return ended_; }
  uint64_t last_end_ns() const { return last_end_ns_; }
  uint64_t shortest_ns() const { return shortest_ns_; }  // 0: none has ended

 private:
  bool open_ = false;
  uint64_t opened_ns_ = 0;
  uint64_t waited_ns_ = 0;
  uint64_t ended_ = 0;
  uint64_t last_end_ns_ = 0;
  uint64_t shortest_ns_ = 0;
};

}  // namespace sluice::flow
