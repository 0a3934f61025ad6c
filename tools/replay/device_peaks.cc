// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tools/replay/device_peaks.h"

#include <algorithm>

namespace sluice::replay {
namespace {

/// Lanes for single precision in an SM (CUDA C++ Programming Guide, arithmetic instructions). 0:
/// there is no such GPU.
int LanesPerSm(int arch) {
  if (arch < 30) return 0;
  if (arch < 50) return 192;
  if (arch == 60) return 64;
  if (arch < 70) return 128;
  if (arch < 86) return 64;  // 7.0 to 8.0
  return 128;
}

}  // namespace

DeviceAttributes AttributesOf(const cuda::ClientDevice& device) {
  return {.arch = device.arch(),
          .sm_count = device.Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
          .clock_khz = device.Attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
          .memory_clock_khz = device.Attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
          .bus_bits = device.Attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)};
}

DevicePeaks PeaksOf(const DeviceAttributes& attributes) {
  const auto product = [](int a, int b, int khz) {
    // What is below 0 is no answer either.
    return 2e3 * std::max(a, 0) * std::max(b, 0) * std::max(khz, 0);
  };
  return {product(attributes.sm_count, LanesPerSm(attributes.arch), attributes.clock_khz),
          product(attributes.bus_bits, 1, attributes.memory_clock_khz) / 8};
}

}  // namespace sluice::replay
