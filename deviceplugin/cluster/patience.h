// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "common/status.h"

namespace sluice::deviceplugin {

/// How long somebody waits for a peer, and who may end it before. Of one thread.
class Patience {
 public:
  /// From now on. `stopped`, which outlives it, may be null: nobody ends it then. It is asked four
  /// times a second.
  Patience(std::chrono::milliseconds most, const std::function<bool()>* stopped);

  /// One that ends as this one does, and in any case so much later than now.
  Patience AtMost(std::chrono::milliseconds most) const;

  /// Waits until `fd` is ready for `events` (of poll) or broken, which whoever uses it next sees.
  /// kUnavailable: the time is over, or it was stopped.
  Status Await(int fd, short events) const;
  /// The same without anything to wait for: for who is never kept waiting.
  Status Check() const;

  std::chrono::milliseconds left() const;
  bool stopped() const { return stopped_ != nullptr && (*stopped_)(); }

 private:
  uint64_t until_ns_ = 0;
  std::chrono::milliseconds most_;  // of what is left, for the message
  const std::function<bool()>* stopped_ = nullptr;
};

}  // namespace sluice::deviceplugin
