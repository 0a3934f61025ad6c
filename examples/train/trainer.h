// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <functional>

#include "examples/train/digits.h"
#include "examples/train/driver_device.h"
#include "examples/train/options.h"

namespace train {

/// Trains; calls `report` with each iteration's number and loss, in order, a few iterations late.
void Train(DriverDevice& device, const Options& options, const Digits& digits,
           const std::function<void(int, float)>& report);

}  // namespace train
