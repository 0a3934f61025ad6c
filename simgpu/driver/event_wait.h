// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "simgpu/driver/driver.h"

namespace sluice::simgpu {

/// The operation by which `context` waits for what the event stands for now, whatever context or
/// process recorded it; kNothing if there is nothing to wait for. No context's lock is held.
CUresult WaitCommand(Context* context, CUevent event, Command* out);

}  // namespace sluice::simgpu
