// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

#include "scheduler/profile/classes.h"

namespace sluice::cli {

/// The curve as a picture (SVG 1.1, self-contained): classes stacked over GPU time, the
/// longest-lived at the bottom, as closely as its pixels can show. `end_ns`: where the last point
/// ends; `title` may hold any characters.
std::string CurveSvg(const std::vector<scheduler::CurvePoint>& curve, double end_ns,
                     const std::string& title);

}  // namespace sluice::cli
