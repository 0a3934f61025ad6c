// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>

#include "noderuntime/supervisor/restarts.h"

namespace sluice::noded {

/// How often the keeper was lost, since when there is none, and when the next one is started: at
/// once, and then after ever longer pauses (supervisor::Restarts), for good. Times in nanoseconds
/// of one clock. Pure; for one thread.
class KeeperLosses {
 public:
  void Got(uint64_t now_ns) {
    got_ns_ = now_ns;
    missing_since_ns_.reset();
  }
  /// It is gone, or another one could not be had.
  void Lost(uint64_t now_ns) {
    const uint64_t had_for = got_ns_.has_value() ? now_ns - *got_ns_ : 0;
    if (got_ns_.has_value()) ++count_;
    if (!missing_since_ns_.has_value()) missing_since_ns_ = now_ns;
    got_ns_.reset();
    due_ns_ = now_ns + restarts_.Ended(had_for);
  }

  /// Of those that were there.
  uint64_t count() const { return count_; }
  uint64_t MissingFor(uint64_t now_ns) const {
    return missing_since_ns_.has_value() ? now_ns - *missing_since_ns_ : 0;
  }
  uint64_t due_ns() const { return due_ns_; }

 private:
  supervisor::Restarts restarts_{0};
  std::optional<uint64_t> got_ns_;
  std::optional<uint64_t> missing_since_ns_;
  uint64_t count_ = 0;
  uint64_t due_ns_ = 0;
};

}  // namespace sluice::noded
