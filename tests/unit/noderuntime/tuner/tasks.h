// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "noderuntime/tuner/search.h"

namespace sluice::tuner {

/// A triangle: `layers` units that come and then go, a launch of 50 us each, and as much again on
/// the host.
inline scheduler::simulate::Workload Triangle(const std::string& name, uint32_t layers) {
  constexpr uint64_t kUnit = 1 << 20;
  scheduler::Profile profile;
  profile.period = 2 * layers;
  for (uint32_t n = 0; n < profile.period; ++n) {
    const uint64_t live = (n < layers ? n + 1 : profile.period - n) * kUnit;
    profile.live_before.push_back(live);
    profile.max_live.push_back(live);
    profile.largest_alloc.push_back(kUnit);
    profile.launch_ns.push_back(50'000);
    profile.iteration_ns += 50'000;
  }
  profile.peak_bytes = layers * kUnit;
  profile.timed = true;
  auto made =
      scheduler::simulate::LiveWorkload(name, profile, scheduler::PlanGates(profile, kUnit), kUnit,
                                        2. * static_cast<double>(profile.iteration_ns));
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *std::move(made);
}

/// Two such jobs in a pool in which their peaks do not fit together.
inline SearchTask TwoTriangles(uint32_t layers = 20) {
  SearchTask task;
  task.jobs = {Triangle("a", layers), Triangle("b", layers)};
  task.options.unit_bytes = 1 << 20;
  task.options.pool_units = layers + layers / 2;
  return task;
}

}  // namespace sluice::tuner
