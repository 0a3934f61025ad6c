// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <vector>

#include "examples/train/options.h"

namespace train {

inline constexpr int kPixels = 64;
inline constexpr int kInputChannels = 4;
inline constexpr int kPaddedClasses = 16;

/// Where each parameter stands in the one array of all parameters, in floats. The *sliced* ones
/// come first: their gradients are summed up in slices of the batch before they are added. The
/// weights of the dense layers follow.
struct Layout {
  struct Stage {
    int scale, shift;
  };
  struct Block {
    int weights, bias;
    std::vector<Stage> stages;
  };

  explicit Layout(const Shape& shape);

  int stem_weights, stem_bias;
  std::vector<Block> blocks;
  int hidden_bias, class_bias;
  int sliced;  // how many floats are sliced
  int hidden_weights, class_weights;
  int total;
};

/// Starting values for all parameters; the same for the same shape and seed.
std::vector<float> InitialParameters(const Shape& shape, const Layout& layout, uint64_t seed);

/// The numbers from 0 to samples - 1 in an order that depends on the seed.
std::vector<int32_t> ShuffledOrder(int samples, uint64_t seed);

}  // namespace train
