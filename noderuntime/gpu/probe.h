// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "noderuntime/doctor/facts.h"

namespace sluice::gpu {

/// What the driver and its management library say of themselves and of each GPU. Makes no context.
void ProbeDriver(doctor::Facts* facts);

}  // namespace sluice::gpu
