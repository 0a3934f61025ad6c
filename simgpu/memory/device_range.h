// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>

namespace sluice::simgpu {

/// Where device addresses live, in the client (reserved, never accessible) and in its executor
/// (mapped). Neither the kernel's own placement of mappings nor the sanitizers' shadows come here.
inline constexpr uint64_t kDeviceLow = 0x400000000000;
inline constexpr uint64_t kDeviceHigh = 0x480000000000;

inline bool IsDeviceAddress(uint64_t address) {
  return address >= kDeviceLow && address < kDeviceHigh;
}

}  // namespace sluice::simgpu
