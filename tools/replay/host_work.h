// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>

namespace sluice::replay {

/// What a program computes between its calls of the driver.
class HostWork {
 public:
  HostWork();
  /// Lets `ns` pass. On the simulated GPU they are simulated ones, declared to it; elsewhere the
  /// thread sleeps.
  void For(uint64_t ns) const;

 private:
  int (*declare_)(uint64_t ns) = nullptr;
};

}  // namespace sluice::replay
