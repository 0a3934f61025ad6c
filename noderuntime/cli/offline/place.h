// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "noderuntime/cli/offline/place_options.h"
#include "noderuntime/cli/offline/run.h"

namespace sluice::cli {

/// `sluice place`: reads a table of buffers (or a memory trace), places them, has the placement
/// judged by code that shares nothing with what made it, and says how good it is. 1 when it is not
/// below the capacity; the table is written even then.
Output RunPlace(const PlaceOptions& options);

}  // namespace sluice::cli
