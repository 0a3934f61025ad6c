// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "examples/train/network.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "examples/train/digits.h"
#include "examples/train/embedded.h"
#include "tests/unit/examples/host_device.h"

namespace train {
namespace {

/// A network with everything that it reads, in memory of this process.
class Rig {
 public:
  Rig(HostDevice& device, const Shape& shape, uint64_t seed = 1) : layout_(shape) {
    std::string error;
    EXPECT_TRUE(ParseDigits(kDigitsText, &digits_, &error)) << error;
    order_ = ShuffledOrder(digits_.samples(), seed);
    parameters_ = InitialParameters(shape, layout_, seed);
    network_ =
        std::make_unique<Network>(device, shape,
                                  DeviceData{Address(digits_.images), Address(digits_.labels),
                                             Address(order_), digits_.samples()});
  }

  template <class T>
  static DevicePtr Address(std::vector<T>& values) {
    return reinterpret_cast<DevicePtr>(values.data());
  }
  static const float* Floats(const Buffer& buffer) {
    return reinterpret_cast<const float*>(buffer.get());
  }

  float Run(int start, std::vector<float>* gradient = nullptr) {
    const Network::Outcome outcome = network_->Run(Address(parameters_), start);
    if (gradient != nullptr) {
      gradient->assign(Floats(outcome.gradient), Floats(outcome.gradient) + layout_.total);
    }
    return *Floats(outcome.loss);
  }

  const Layout& layout() const { return layout_; }
  std::vector<float>& parameters() { return parameters_; }

 private:
  Layout layout_;
  Digits digits_;
  std::vector<int32_t> order_;
  std::vector<float> parameters_;
  std::unique_ptr<Network> network_;
};

Shape SmallShape() {
  Shape shape;
  shape.batch = 8;
  shape.channels = 8;
  shape.depth = 2;
  shape.stages = 2;
  shape.hidden = 16;
  return shape;
}

/// Compares the gradient's product with a direction to the difference of two losses along it, for
/// the parameters [begin, end).
void ExpectGradientMatches(Rig& rig, const std::vector<float>& gradient, int begin, int end) {
  double length = 0.0;
  for (int i = begin; i < end; ++i) length += std::pow(gradient[static_cast<size_t>(i)], 2.0);
  length = std::sqrt(length);
  ASSERT_GT(length, 1e-5) << "parameters " << begin << " to " << end << " get no gradient";
  // Along its own direction the gradient's product is its length. A step against every other
  // component would cancel errors; this one cannot.
  const double step = 5e-3;
  const std::vector<float> saved = rig.parameters();
  const auto loss_at = [&](double factor) {
    for (int i = begin; i < end; ++i) {
      const auto k = static_cast<size_t>(i);
      rig.parameters()[k] = static_cast<float>(saved[k] + factor * gradient[k] / length);
    }
    return static_cast<double>(rig.Run(3));
  };
  const double slope = (loss_at(step) - loss_at(-step)) / (2.0 * step);
  rig.parameters() = saved;
  EXPECT_NEAR(slope, length, 0.01 * length + 2e-4) << "parameters " << begin << " to " << end;
}

TEST(NetworkTest, GradientOfEachLayerMatchesTheSlopeOfTheLoss) {
  HostDevice device;
  const Shape shape = SmallShape();
  Rig rig(device, shape);
  std::vector<float> gradient;
  ASSERT_TRUE(std::isfinite(rig.Run(3, &gradient)));
  const Layout& l = rig.layout();
  const int c = shape.channels;
  ExpectGradientMatches(rig, gradient, l.stem_weights, l.stem_bias);
  ExpectGradientMatches(rig, gradient, l.stem_bias, l.stem_bias + c);
  for (const Layout::Block& block : l.blocks) {
    ExpectGradientMatches(rig, gradient, block.weights, block.bias);
    ExpectGradientMatches(rig, gradient, block.bias, block.bias + c);
    for (const Layout::Stage& stage : block.stages) {
      ExpectGradientMatches(rig, gradient, stage.scale, stage.shift);
      ExpectGradientMatches(rig, gradient, stage.shift, stage.shift + c);
    }
  }
  ExpectGradientMatches(rig, gradient, l.hidden_bias, l.class_bias);
  ExpectGradientMatches(rig, gradient, l.class_bias, l.sliced);
  ExpectGradientMatches(rig, gradient, l.hidden_weights, l.class_weights);
  ExpectGradientMatches(rig, gradient, l.class_weights, l.total);
}

TEST(NetworkTest, EachConvolutionWeightHasItsOwnGradient) {
  HostDevice device;
  Rig rig(device, SmallShape());
  std::vector<float> gradient;
  rig.Run(3, &gradient);
  // One per tap, in the first block: a swapped tap or channel would pass where only sums are
  // compared.
  for (int tap = 0; tap < 9; ++tap) {
    const int at = rig.layout().blocks[0].weights + (tap * 8 + tap % 8) * 8 + (tap * 3) % 8;
    const auto k = static_cast<size_t>(at);
    const float saved = rig.parameters()[k];
    rig.parameters()[k] = saved + 0.05f;
    const float above = rig.Run(3);
    rig.parameters()[k] = saved - 0.05f;
    const float below = rig.Run(3);
    rig.parameters()[k] = saved;
    EXPECT_NEAR((above - below) / 0.1f, gradient[k], 2e-3f + 0.05f * std::fabs(gradient[k]))
        << "tap " << tap;
  }
}

std::vector<float> TrainSgd(const Shape& shape, uint64_t seed, int iterations) {
  HostDevice device;
  Rig rig(device, shape, seed);
  std::vector<float> velocity(rig.parameters().size(), 0.0f), losses, gradient;
  for (int i = 0; i < iterations; ++i) {
    losses.push_back(rig.Run(i * shape.batch % 1797, &gradient));
    device.Launch("sgd", rig.layout().total, 256, Rig::Address(rig.parameters()),
                  Rig::Address(velocity), Rig::Address(gradient), 0.05f, 0.9f, rig.layout().total);
  }
  return losses;
}

TEST(NetworkTest, LossFallsOver200Iterations) {
  Shape shape;
  shape.batch = 64;
  const std::vector<float> losses = TrainSgd(shape, 1, 200);
  const auto mean = [](auto begin, auto end) {
    return std::accumulate(begin, end, 0.0f) / static_cast<float>(end - begin);
  };
  const float first = mean(losses.begin(), losses.begin() + 5);
  const float last = mean(losses.end() - 20, losses.end());
  EXPECT_GT(first, 1.5f);
  EXPECT_LT(last, 0.25f * first);
}

TEST(NetworkTest, TwoRunsGiveTheSameBitsAndAnotherSeedOthers) {
  Shape shape = SmallShape();
  shape.batch = 40;
  const std::vector<float> a = TrainSgd(shape, 1, 10), b = TrainSgd(shape, 1, 10);
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
  EXPECT_NE(a, TrainSgd(shape, 2, 10));
}

TEST(NetworkTest, LiveMemoryRisesToOnePeakAndFallsToNothing) {
  HostDevice device;
  const Shape shape;
  Rig rig(device, shape);
  rig.Run(0);
  EXPECT_EQ(device.live_bytes(), 0u);
  EXPECT_GE(device.peak_bytes(), size_t{26} << 20);
  EXPECT_LE(device.peak_bytes(), size_t{40} << 20);
  const std::vector<size_t>& live = device.live_at_launch();
  const double mean = static_cast<double>(std::accumulate(live.begin(), live.end(), size_t{0})) /
                      static_cast<double>(live.size());
  EXPECT_LE(mean / static_cast<double>(device.peak_bytes()), 0.65);
  EXPECT_GE(live.size(), 40u);
  EXPECT_LE(live.size(), 120u);
  // Up to the peak it never falls by more than the few maps that an operation needs for itself, and
  // behind the peak it never rises by more.
  const size_t few = size_t{3} << 20;
  const auto top = std::max_element(live.begin(), live.end());
  size_t highest = 0, lowest = *top;
  for (auto at = live.begin(); at != top; ++at) {
    EXPECT_GE(*at + few, highest);
    highest = std::max(highest, *at);
  }
  for (auto at = top; at != live.end(); ++at) {
    EXPECT_LE(*at, lowest + few);
    lowest = std::min(lowest, *at);
  }
}

TEST(NetworkTest, AdamFollowsItsFormula) {
  HostDevice device;
  std::vector<float> p = {1.0f, -2.0f}, m = {0.5f, 0.0f}, v = {0.25f, 0.0f}, g = {0.1f, -3.0f};
  device.Launch("adam", 2, 256, Rig::Address(p), Rig::Address(m), Rig::Address(v), Rig::Address(g),
                0.01f, 0.9f, 0.999f, 0.19f, 0.001999f, 2);
  const auto expected = [](double p0, double m0, double v0, double gradient) {
    const double m1 = 0.9 * m0 + 0.1 * gradient, v1 = 0.999 * v0 + 0.001 * gradient * gradient;
    return p0 - 0.01 * (m1 / 0.19) / (std::sqrt(v1 / 0.001999) + 1e-8);
  };
  EXPECT_NEAR(p[0], expected(1.0, 0.5, 0.25, 0.1), 1e-5);
  EXPECT_NEAR(p[1], expected(-2.0, 0.0, 0.0, -3.0), 1e-5);
}

}  // namespace
}  // namespace train
