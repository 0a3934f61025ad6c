// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include "common/cuda/abi.h"

namespace sluice {

/// What cuGetProcAddress should answer for `symbol` where the driver answered `entry`: the hook of
/// exactly that variant, else `entry` itself.
void* HookForEntry(const char* symbol, void* entry, cuuint64_t flags);

}  // namespace sluice
