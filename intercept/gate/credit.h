// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include "intercept/protocol/pages.h"

namespace sluice {

/// How far the CPU is ahead of the GPU on the pacing stream, in profiled GPU time. Issued time
/// grows per launch; reached time is what had been issued when the last reached mark was queued.
/// Pure; the caller holds the state lock.
class Credit {
 public:
  /// The GPU always has this many launches to go on with, however long they are.
  static constexpr uint64_t kKeepQueued = 2;

  constexpr Credit() = default;

  void Reset() { *this = Credit(); }
  void OnLaunch(uint64_t gpu_ns) {
    issued_ns_ += gpu_ns;
    ++issued_launches_;
  }
  /// A mark was queued behind everything issued so far.
  void OnMark(uint64_t value);

  /// Takes note of the mark's current value. Returns whether the caller should wait, and for which
  /// mark: the first that brings the lead within `credit_ns`, or leaves kKeepQueued launches.
  bool ShouldWait(uint64_t current_mark, uint64_t credit_ns, uint64_t* wait_for);

  uint64_t lead_ns() const { return issued_ns_ - reached_ns_; }

 private:
  struct Mark {
    uint64_t value;
    uint64_t ns;
    uint64_t launches;
  };
  static constexpr uint32_t kMarks = 64;

  Mark marks_[kMarks] = {};
  uint32_t first_ = 0;
  uint32_t count_ = 0;
  uint64_t issued_ns_ = 0;
  uint64_t issued_launches_ = 0;
  uint64_t reached_ns_ = 0;
  uint64_t reached_launches_ = 0;
};

}  // namespace sluice
