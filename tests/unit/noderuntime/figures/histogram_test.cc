// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/figures/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace sluice::figures {
namespace {

constexpr uint64_t kBounds[] = {10, 100};

TEST(Histogram, ABoundIsInItsBucketAndTheLastBucketHasNone) {
  Histogram histogram(kBounds);
  for (const uint64_t ns : {0u, 10u, 11u, 100u, 101u, 100'000u}) histogram.Add(ns);
  const auto counts = histogram.counts();
  EXPECT_EQ(std::vector<uint64_t>(counts.begin(), counts.end()), (std::vector<uint64_t>{2, 2, 2}));
  EXPECT_EQ(histogram.sum_ns(), 100'222u);
}

TEST(Histogram, TheBoundsOfAllKindsAscendAndFit) {
  const std::span<const uint64_t> all[] = {kWaitBounds, kDecisionBounds, kServiceBounds,
                                           kHandoverBounds, kReclaimBounds};
  for (const std::span<const uint64_t> bounds : all) {
    EXPECT_LE(bounds.size(), Histogram::kMostBounds);
    EXPECT_TRUE(std::is_sorted(bounds.begin(), bounds.end()));
    EXPECT_EQ(Histogram(bounds).counts().size(), bounds.size() + 1);
  }
}

}  // namespace
}  // namespace sluice::figures
