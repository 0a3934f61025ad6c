// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "bench/papers_table.h"

namespace sluice::bench {

/// Lines over an axis that begins at 0, marked as simulated. Up to eight of them can be told apart.
std::string SvgOf(const Chart& chart);

}  // namespace sluice::bench
