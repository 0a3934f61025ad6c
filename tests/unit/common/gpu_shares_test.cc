// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/gpu_shares.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace sluice {
namespace {

constexpr double kTiny = 1e-9;
constexpr int kRounds = 2000;

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

class Random {
 public:
  double Part() { return std::uniform_real_distribution<double>(0, 1)(engine_); }
  size_t Count() { return std::uniform_int_distribution<size_t>(1, 12)(engine_); }
  /// Some ask for nothing, some for all.
  double Demand() {
    const double part = Part();
    return part < 0.1 ? 0 : part > 0.8 ? 1 : Part();
  }

 private:
  std::mt19937 engine_{20261121};
};

TEST(MaxMin, GivesEqualPartsToEquals) {
  EXPECT_EQ(MaxMin(std::vector<double>{1, 1, 1, 1}, 1), (std::vector<double>(4, 0.25)));
  const std::vector<double> shares = MaxMin(std::vector<double>{0.9, 0.1, 0.6}, 1);
  EXPECT_NEAR(shares[0], 0.45, kTiny);
  EXPECT_NEAR(shares[1], 0.1, kTiny);
  EXPECT_NEAR(shares[2], 0.45, kTiny);
  EXPECT_TRUE(MaxMin({}, 1).empty());
}

TEST(MaxMin, IsFeasibleWorkConservingAndFair) {
  Random random;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> demands(random.Count());
    for (double& demand : demands) demand = random.Demand();
    const double capacity = random.Part() * 2;
    const std::vector<double> shares = MaxMin(demands, capacity);
    ASSERT_EQ(shares.size(), demands.size());
    ASSERT_LE(Sum(shares), capacity + kTiny);
    ASSERT_NEAR(Sum(shares), std::min(Sum(demands), capacity), 1e-6);
    for (size_t i = 0; i < shares.size(); ++i) {
      ASSERT_GE(shares[i], 0);
      ASSERT_LE(shares[i], demands[i] + kTiny);
      // Who got less than it asked for has at least as much as everybody else.
      if (shares[i] > demands[i] - 1e-6) continue;
      for (const double other : shares) ASSERT_GE(shares[i], other - 1e-6);
    }
  }
}

TEST(SharedRates, AloneEverythingRunsAtFullSpeed) {
  for (const GpuDemand alone : {GpuDemand{1, 1}, GpuDemand{0.3, 0}, GpuDemand{0, 0.5}}) {
    EXPECT_NEAR(SharedRates(std::vector<GpuDemand>{alone})[0], 1, kTiny);
  }
}

TEST(SharedRates, TwoThatFillTheGpuRunAtHalfSpeed) {
  const std::vector<double> rates = SharedRates(std::vector<GpuDemand>{{1, 0}, {1, 0}});
  EXPECT_NEAR(rates[0], 0.5, kTiny);
  EXPECT_NEAR(rates[1], 0.5, kTiny);
}

// A memory-bound kernel that needs few SMs leaves them to one that needs no bandwidth.
TEST(SharedRates, ComplementsDoNotSlowEachOther) {
  const std::vector<double> rates = SharedRates(std::vector<GpuDemand>{{0.4, 1}, {0.6, 0}});
  EXPECT_NEAR(rates[0], 1, kTiny);
  EXPECT_NEAR(rates[1], 1, kTiny);
  const std::vector<double> bound = SharedRates(std::vector<GpuDemand>{{0.4, 1}, {0.4, 1}});
  EXPECT_NEAR(bound[0], 0.5, kTiny);
  EXPECT_NEAR(bound[1], 0.5, kTiny);
}

TEST(SharedRates, NeverUsesMoreThanThereIsAndNeverIdlesForNothing) {
  Random random;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<GpuDemand> demands(random.Count());
    for (GpuDemand& demand : demands) demand = {random.Demand(), random.Demand()};
    const std::vector<double> rates = SharedRates(demands);
    double sms = 0;
    double sms_given = 0;
    double bytes = 0;
    bool slowed = false;
    for (size_t i = 0; i < rates.size(); ++i) {
      ASSERT_GE(rates[i], 0);
      ASSERT_LE(rates[i], 1 + kTiny);
      sms += rates[i] * demands[i].sm;
      sms_given += demands[i].sm;
      bytes += rates[i] * demands[i].bandwidth;
      slowed = slowed || rates[i] < 1 - 1e-6;
    }
    ASSERT_LE(sms, 1 + 1e-6);
    ASSERT_LE(bytes, 1 + 1e-6);
    // Who is slowed down is so because something is used up: the SMs as they were asked for, or
    // the bandwidth.
    ASSERT_TRUE(!slowed || sms_given > 1 - 1e-6 || bytes > 1 - 1e-6);
  }
}

}  // namespace
}  // namespace sluice
