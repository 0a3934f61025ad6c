// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "examples/train/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace train {
namespace {

TEST(LayoutTest, ParametersFollowEachOtherWithoutGaps) {
  const Shape shape;
  const Layout layout(shape);
  const int c = shape.channels;
  EXPECT_EQ(layout.stem_weights, 0);
  EXPECT_EQ(layout.stem_bias, 9 * kInputChannels * c);
  EXPECT_EQ(layout.blocks.size(), static_cast<size_t>(shape.depth));
  EXPECT_EQ(layout.blocks[0].weights, layout.stem_bias + c);
  EXPECT_EQ(layout.class_bias, layout.hidden_bias + shape.hidden);
  EXPECT_EQ(layout.sliced, layout.class_bias + kPaddedClasses);
  EXPECT_EQ(layout.total, layout.class_weights + shape.hidden * kPaddedClasses);
}

TEST(LayoutTest, StartDependsOnTheSeedAlone) {
  const Shape shape;
  const Layout layout(shape);
  EXPECT_EQ(InitialParameters(shape, layout, 5), InitialParameters(shape, layout, 5));
  EXPECT_NE(InitialParameters(shape, layout, 5), InitialParameters(shape, layout, 6));
  EXPECT_EQ(ShuffledOrder(1797, 1), ShuffledOrder(1797, 1));
}

TEST(LayoutTest, OrderHasEachSampleOnce) {
  std::vector<int32_t> order = ShuffledOrder(1797, 3);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  std::vector<int32_t> expected(1797);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

}  // namespace
}  // namespace train
