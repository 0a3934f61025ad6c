// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "examples/train/layout.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace train {
namespace {

/// SplitMix64. The standard's distributions may differ between libraries.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  /// Uniform between -1 and 1.
  float Uniform() { return static_cast<float>(Next() >> 40) * 0x1p-23f - 1.0f; }

 private:
  uint64_t state_;
};

void FillWeights(std::vector<float>& values, int at, int count, int fan_in, float gain,
                 Random& random) {
  const float bound = gain * std::sqrt(3.0f / static_cast<float>(fan_in));
  for (int i = 0; i < count; ++i) values[static_cast<size_t>(at + i)] = bound * random.Uniform();
}

}  // namespace

Layout::Layout(const Shape& shape) {
  int next = 0;
  const auto take = [&](int floats) {
    const int at = next;
    next += floats;
    return at;
  };
  const int c = shape.channels;
  stem_weights = take(9 * kInputChannels * c);
  stem_bias = take(c);
  for (int i = 0; i < shape.depth; ++i) {
    Block block;
    block.weights = take(9 * c * c);
    block.bias = take(c);
    for (int k = 0; k < shape.stages; ++k) {
      Stage stage;
      stage.scale = take(c);
      stage.shift = take(c);
      block.stages.push_back(stage);
    }
    blocks.push_back(std::move(block));
  }
  hidden_bias = take(shape.hidden);
  class_bias = take(kPaddedClasses);
  sliced = next;
  hidden_weights = take(16 * c * shape.hidden);
  class_weights = take(shape.hidden * kPaddedClasses);
  total = next;
}

std::vector<float> InitialParameters(const Shape& shape, const Layout& layout, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(layout.total), 0.0f);
  Random random(seed);
  const int c = shape.channels;
  FillWeights(values, layout.stem_weights, 9 * kInputChannels * c, 9 * kInputChannels, 1.0f,
              random);
  for (const Layout::Block& block : layout.blocks) {
    FillWeights(values, block.weights, 9 * c * c, 9 * c, 1.0f, random);
    // The gates shrink what passes; a scale above one makes up for it, except where the block ends.
    for (const Layout::Stage& stage : block.stages) {
      std::fill_n(values.begin() + stage.scale, c, &stage == &block.stages.back() ? 1.0f : 1.5f);
    }
  }
  FillWeights(values, layout.hidden_weights, 16 * c * shape.hidden, 16 * c, 1.5f, random);
  FillWeights(values, layout.class_weights, shape.hidden * kPaddedClasses, shape.hidden, 0.5f,
              random);
  return values;
}

std::vector<int32_t> ShuffledOrder(int samples, uint64_t seed) {
  std::vector<int32_t> order(static_cast<size_t>(samples));
  std::iota(order.begin(), order.end(), 0);
  Random random(seed ^ 0x5eed);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Next() % i]);
  return order;
}

}  // namespace train
