// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "simgpu/sharing/gpu_state.h"

namespace sluice::simgpu {

/// While this lasts a thread of the program waits for its executor outside of virtual time:
/// starting it and mapping memory take real time. Must not be taken for a program that waits
/// elsewhere.
class InsideDriver {
 public:
  /// Called before the first one, where there is virtual time.
  static void TellOf(const GpuState* gpu);

  InsideDriver();
  ~InsideDriver();
  InsideDriver(const InsideDriver&) = delete;
  InsideDriver& operator=(const InsideDriver&) = delete;
};

}  // namespace sluice::simgpu
