// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdio>

#include "common/status.h"

namespace sluice {

/// Writes what `out` still holds. kUnavailable, with the reason: not all that was printed could be
/// written. A reader that has gone, as `head` does, is no error.
Status FlushOutput(std::FILE* out);

}  // namespace sluice
