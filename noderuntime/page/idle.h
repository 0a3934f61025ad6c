// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>

namespace sluice::page {

/// When a gateway that was started for one person's page has no more to do: no daemon has answered,
/// and nobody has looked, for `limit_s` seconds. Pure; times in seconds of any one clock.
class IdleWatch {
 public:
  /// 0: never.
  IdleWatch(uint64_t limit_s, uint64_t now_s) : limit_s_(limit_s), since_s_(now_s) {}

  /// How things are now. True: it may end.
  bool Over(uint64_t now_s, bool daemon_answers, bool somebody_looks) {
    if (daemon_answers || somebody_looks) since_s_ = now_s;
    return limit_s_ != 0 && now_s - since_s_ >= limit_s_;
  }

 private:
  uint64_t limit_s_;
  uint64_t since_s_;
};

}  // namespace sluice::page
