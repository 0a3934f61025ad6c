// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tools/replay/device_peaks.h"

#include <gtest/gtest.h>

#include "common/machine_file.h"

namespace sluice::replay {
namespace {

DeviceAttributes Of(const Machine& machine) {
  return {.arch = machine.compute_capability,
          .sm_count = static_cast<int>(machine.sm_count),
          .clock_khz = static_cast<int>(machine.clock_khz),
          .memory_clock_khz = static_cast<int>(machine.memory_clock_khz),
          .bus_bits = static_cast<int>(machine.bus_bits)};
}

TEST(DevicePeaksTest, AreThoseOfTheDatasheets) {
  for (const char* name : {"p100-16", "v100-32", "2080ti-11", "h200"}) {
    const Result<Machine> machine = ReadNamedMachine(name, SLUICE_MACHINES);
    ASSERT_TRUE(machine.ok()) << machine.status().message();
    const DevicePeaks peaks = PeaksOf(Of(*machine));
    EXPECT_NEAR(peaks.flops_per_s / machine->flops_per_s, 1, 0.01) << name;
    const auto bandwidth = static_cast<double>(machine->memory_bytes_per_s);
    EXPECT_NEAR(peaks.bytes_per_s / bandwidth, 1, 0.01) << name;
  }
}

TEST(DevicePeaksTest, OfEveryGenerationAreTheLanesOfItsSms) {
  // Of one SM at 1 GHz: K80, M40, P100, P4, V100, T4, A100, A10, L4, H100, B200, RTX 5090.
  for (const auto& [arch, lanes] : {std::pair{37, 192},
                                    {52, 128},
                                    {60, 64},
                                    {61, 128},
                                    {70, 64},
                                    {75, 64},
                                    {80, 64},
                                    {86, 128},
                                    {89, 128},
                                    {90, 128},
                                    {100, 128},
                                    {120, 128}}) {
    const DevicePeaks peaks = PeaksOf({.arch = arch, .sm_count = 1, .clock_khz = 1'000'000});
    EXPECT_DOUBLE_EQ(peaks.flops_per_s, 2e9 * lanes) << arch;
  }
}

TEST(DevicePeaksTest, WhatTheDriverDoesNotTellIsUnknown) {
  const DeviceAttributes all{
      .arch = 80, .sm_count = 2, .clock_khz = 3, .memory_clock_khz = 4, .bus_bits = 5};
  EXPECT_GT(PeaksOf(all).flops_per_s, 0);
  EXPECT_GT(PeaksOf(all).bytes_per_s, 0);
  for (int DeviceAttributes::*of :
       {&DeviceAttributes::arch, &DeviceAttributes::sm_count, &DeviceAttributes::clock_khz}) {
    for (const int value : {0, -1}) {
      DeviceAttributes some = all;
      some.*of = value;
      EXPECT_EQ(PeaksOf(some).flops_per_s, 0);
      EXPECT_EQ(PeaksOf(some).bytes_per_s, PeaksOf(all).bytes_per_s);
    }
  }
  for (int DeviceAttributes::*of :
       {&DeviceAttributes::memory_clock_khz, &DeviceAttributes::bus_bits}) {
    for (const int value : {0, -1}) {
      DeviceAttributes some = all;
      some.*of = value;
      EXPECT_EQ(PeaksOf(some).bytes_per_s, 0);
      EXPECT_EQ(PeaksOf(some).flops_per_s, PeaksOf(all).flops_per_s);
    }
  }
}

}  // namespace
}  // namespace sluice::replay
