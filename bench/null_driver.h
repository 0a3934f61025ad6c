// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <array>
#include <cstdint>

#include "intercept/lookup/driver_table.h"

namespace sluice::bench {

/// The only context.
inline const CUcontext kNullContext = reinterpret_cast<CUcontext>(0x10);

/// What the library asks of a driver, answered by functions that do next to nothing: the time of a
/// call through the client is then the library's own. A mark is reached as soon as it is queued,
/// as on a GPU that is always done. One at a time.
const DriverTable& NullDriver(const std::array<uint8_t, 16>& gpu_uuid);

/// The marks that were ever queued.
uint64_t NullDriverMarks();

}  // namespace sluice::bench
