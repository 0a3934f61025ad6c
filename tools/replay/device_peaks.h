// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "common/cuda/client_device.h"

namespace sluice::replay {

/// What a driver tells of its GPU. 0: it does not.
struct DeviceAttributes {
  int arch = 0;  // compute capability times ten
  int sm_count = 0;
  int clock_khz = 0;
  int memory_clock_khz = 0;
  int bus_bits = 0;
};

DeviceAttributes AttributesOf(const cuda::ClientDevice& device);

/// 0: unknown.
struct DevicePeaks {
  double flops_per_s = 0;  // single precision, a fused multiply-add counted as two
  double bytes_per_s = 0;  // of its memory, two transfers per clock
};

DevicePeaks PeaksOf(const DeviceAttributes& attributes);

}  // namespace sluice::replay
