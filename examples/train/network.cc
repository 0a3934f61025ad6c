// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "examples/train/network.h"

#include <algorithm>

namespace train {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kFewThreads = 64;  // for kernels whose threads do much
constexpr int kMostSlices = 32;

}  // namespace

Network::Network(Device& device, const Shape& shape, DeviceData data)
    : device_(device),
      shape_(shape),
      layout_(shape),
      data_(data),
      map_(shape.batch * kPixels * shape.channels),
      slices_(std::min(shape.batch, kMostSlices)) {}

Buffer Network::Convolve(const Buffer& x, int weights, int bias, int in) {
  const int out = shape_.channels;
  const Buffer sum = NewMap();
  device_.Launch("conv3x3", map_ / 4, kThreads, x.get(), Parameter(weights), sum.get(), in, out,
                 map_ / 4);
  Buffer y = NewMap();
  device_.Launch("bias_add", map_, kThreads, sum.get(), Parameter(bias), y.get(), out - 1, map_);
  return y;
}

Buffer Network::ForwardBlock(Buffer input, const Layout::Block& where, Block* saved) {
  const int mask = shape_.channels - 1;
  saved->input = std::move(input);
  Buffer x = Convolve(saved->input, where.weights, where.bias, shape_.channels);
  for (const Layout::Stage& at : where.stages) {
    Stage stage;
    stage.input = std::move(x);
    stage.scaled = NewMap();
    device_.Launch("affine", map_, kThreads, stage.input.get(), Parameter(at.scale),
                   Parameter(at.shift), stage.scaled.get(), mask, map_);
    stage.gate = NewMap();
    device_.Launch("gate", map_, kThreads, stage.scaled.get(), stage.gate.get(), map_);
    x = NewMap();
    device_.Launch("multiply", map_, kThreads, stage.scaled.get(), stage.gate.get(), x.get(), map_);
    saved->stages.push_back(std::move(stage));
  }
  Buffer y = NewMap();
  device_.Launch("add", map_, kThreads, x.get(), saved->input.get(), y.get(), map_);
  return y;
}

Buffer Network::BackwardBlock(Buffer dy, const Layout::Block& where, Block saved) {
  const int c = shape_.channels;
  const int rows = shape_.batch * kPixels;
  // dy is also the gradient of the way past the block.
  Buffer dx;
  for (size_t k = saved.stages.size(); k-- > 0;) {
    Stage stage = std::move(saved.stages[k]);
    Buffer dscaled = NewMap();
    device_.Launch("gated_backward", map_, kThreads, dx.held() ? dx.get() : dy.get(),
                   stage.scaled.get(), stage.gate.get(), dscaled.get(), map_);
    dx.Reset();
    stage.gate.Reset();
    stage.scaled.Reset();
    const Layout::Stage& at = where.stages[k];
    device_.Launch("affine_gradient", slices_ * c / 4, kFewThreads, dscaled.get(),
                   stage.input.get(), At(partial_.get(), at.scale), At(partial_.get(), at.shift), c,
                   rows, slices_, layout_.sliced);
    stage.input.Reset();
    dx = NewMap();
    device_.Launch("affine_backward", map_, kThreads, dscaled.get(), Parameter(at.scale), dx.get(),
                   c - 1, map_);
  }
  BiasGradient(dx, where.bias, c, rows);
  ConvolutionGradient(saved.input, dx, where.weights, c);
  saved.input.Reset();
  const Buffer transposed(device_, static_cast<size_t>(9 * c * c));
  device_.Launch("conv3x3_transpose", 9 * c * c, kFewThreads, Parameter(where.weights),
                 transposed.get(), c, c);
  const Buffer dinput = NewMap();
  device_.Launch("conv3x3", map_ / 4, kThreads, dx.get(), transposed.get(), dinput.get(), c, c,
                 map_ / 4);
  dx = NewMap();
  device_.Launch("add", map_, kThreads, dinput.get(), dy.get(), dx.get(), map_);
  return dx;
}

void Network::BiasGradient(const Buffer& dy, int bias, int channels, int rows) {
  device_.Launch("bias_gradient", slices_ * channels / 4, kFewThreads, dy.get(),
                 At(partial_.get(), bias), channels, rows, slices_, layout_.sliced);
}

void Network::ConvolutionGradient(const Buffer& x, const Buffer& dy, int weights, int in) {
  const int out = shape_.channels;
  device_.Launch("conv3x3_gradient", slices_ * 9 * (in / 4) * (out / 4), kFewThreads, x.get(),
                 dy.get(), At(partial_.get(), weights), in, out, shape_.batch, slices_,
                 layout_.sliced);
}

Buffer Network::Dense(const Buffer& x, int weights, int bias, int in, int out) {
  const Buffer sum = NewRows(out);
  device_.Launch("dense", shape_.batch * out / 8, kFewThreads, x.get(), Parameter(weights),
                 sum.get(), in, out, shape_.batch * out / 8);
  Buffer y = NewRows(out);
  device_.Launch("bias_add", shape_.batch * out, kThreads, sum.get(), Parameter(bias), y.get(),
                 out - 1, shape_.batch * out);
  return y;
}

Buffer Network::Head(Buffer pooled, int start, DevicePtr loss, DevicePtr gradient) {
  const int batch = shape_.batch, features = 16 * shape_.channels, hidden = shape_.hidden;
  const int rows = batch * hidden;
  Buffer h = Dense(pooled, layout_.hidden_weights, layout_.hidden_bias, features, hidden);
  Buffer gate = NewRows(hidden);
  device_.Launch("gate", rows, kThreads, h.get(), gate.get(), rows);
  Buffer gated = NewRows(hidden);
  device_.Launch("multiply", rows, kThreads, h.get(), gate.get(), gated.get(), rows);
  Buffer logits = Dense(gated, layout_.class_weights, layout_.class_bias, hidden, kPaddedClasses);
  Buffer losses = NewRows(1);
  Buffer dlogits = NewRows(kPaddedClasses);
  device_.Launch("softmax_loss", batch, kFewThreads, logits.get(), data_.labels, data_.order, start,
                 data_.samples, losses.get(), dlogits.get(), batch);
  logits.Reset();
  device_.Launch("mean", 256, 256, losses.get(), loss, batch);
  losses.Reset();

  BiasGradient(dlogits, layout_.class_bias, kPaddedClasses, batch);
  device_.Launch("dense_gradient", hidden * kPaddedClasses / 8, kFewThreads, gated.get(),
                 dlogits.get(), At(gradient, layout_.class_weights), hidden, kPaddedClasses, batch);
  gated.Reset();
  Buffer dgated = NewRows(hidden);
  device_.Launch("dense_backward", rows, kThreads, dlogits.get(), Parameter(layout_.class_weights),
                 dgated.get(), hidden, kPaddedClasses, rows);
  dlogits.Reset();
  Buffer dh = NewRows(hidden);
  device_.Launch("gated_backward", rows, kThreads, dgated.get(), h.get(), gate.get(), dh.get(),
                 rows);
  dgated.Reset();
  gate.Reset();
  h.Reset();
  BiasGradient(dh, layout_.hidden_bias, hidden, batch);
  device_.Launch("dense_gradient", features * hidden / 8, kFewThreads, pooled.get(), dh.get(),
                 At(gradient, layout_.hidden_weights), features, hidden, batch);
  pooled.Reset();
  Buffer dpooled = NewRows(features);
  device_.Launch("dense_backward", batch * features, kThreads, dh.get(),
                 Parameter(layout_.hidden_weights), dpooled.get(), features, hidden,
                 batch * features);
  return dpooled;
}

Network::Outcome Network::Run(DevicePtr parameters, int start) {
  const int c = shape_.channels, batch = shape_.batch;
  parameters_ = parameters;
  Outcome outcome{Buffer(device_, 1), Buffer()};
  Buffer input = NewRows(kPixels * kInputChannels);
  device_.Launch("load_batch", batch * kPixels, kThreads, data_.images, data_.order, start,
                 data_.samples, input.get(), batch * kPixels);
  Buffer x = Convolve(input, layout_.stem_weights, layout_.stem_bias, kInputChannels);
  std::vector<Block> saved(layout_.blocks.size());
  for (size_t i = 0; i < saved.size(); ++i) {
    x = ForwardBlock(std::move(x), layout_.blocks[i], &saved[i]);
  }
  Buffer pooled = NewRows(16 * c);
  device_.Launch("pool", batch * 16 * c, kThreads, x.get(), pooled.get(), c, batch * 16 * c);
  x.Reset();

  outcome.gradient = Buffer(device_, static_cast<size_t>(layout_.total));
  partial_ = Buffer(device_, static_cast<size_t>(slices_) * static_cast<size_t>(layout_.sliced));
  Buffer dpooled = Head(std::move(pooled), start, outcome.loss.get(), outcome.gradient.get());
  Buffer dx = NewMap();
  device_.Launch("pool_backward", map_, kThreads, dpooled.get(), dx.get(), c, map_);
  dpooled.Reset();
  for (size_t i = saved.size(); i-- > 0;) {
    dx = BackwardBlock(std::move(dx), layout_.blocks[i], std::move(saved[i]));
  }
  BiasGradient(dx, layout_.stem_bias, c, batch * kPixels);
  ConvolutionGradient(input, dx, layout_.stem_weights, kInputChannels);
  dx.Reset();
  input.Reset();
  device_.Launch("reduce_slices", layout_.sliced, kFewThreads, partial_.get(),
                 outcome.gradient.get(), slices_, layout_.sliced);
  partial_.Reset();
  return outcome;
}

}  // namespace train
