// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include "intercept/blocks/lifetimes.h"
#include "intercept/gate/function_ids.h"
#include "intercept/gate/launch_timer.h"
#include "intercept/protocol/page_access.h"

namespace sluice {

/// Too large for the constant-initialised part of a client; made with its session.
struct GateMemory {
  protocol::ProfileImage profile;
  protocol::ProfileImage scratch;
  uint64_t history[protocol::kMaxPeriodLaunches];
  // The largest block that was asked for behind each gate of the profile, in granules.
  uint32_t largest[protocol::kMaxGates];
  Lifetimes lifetimes;
  // At its last trough the job gave back all that it did not need, and it leases anew since.
  bool gave_back;
  FunctionIds functions;
  LaunchTimer timer;
};

}  // namespace sluice
