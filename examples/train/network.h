// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <vector>

#include "examples/train/device.h"
#include "examples/train/layout.h"

namespace train {

/// The training data in the device's memory.
struct DeviceData {
  DevicePtr images, labels, order;
  int samples;
};

/// A residual convolutional network and its gradient. Feature maps are allocated in the forward
/// pass and freed in the backward pass, in the reverse order, so that live memory rises to one
/// peak.
class Network {
 public:
  Network(Device& device, const Shape& shape, DeviceData data);

  const Layout& layout() const { return layout_; }

  /// Forward and backward over the images from `start` on. The mean loss is one float; the gradient
  /// has the layout of the parameters.
  struct Outcome {
    Buffer loss, gradient;
  };
  Outcome Run(DevicePtr parameters, int start);

 private:
  struct Stage {
    Buffer input, scaled, gate;
  };
  struct Block {
    Buffer input;
    std::vector<Stage> stages;
  };

  Buffer NewMap() { return Buffer(device_, static_cast<size_t>(map_)); }
  Buffer NewRows(int width) {
    return Buffer(device_, static_cast<size_t>(shape_.batch) * static_cast<size_t>(width));
  }
  DevicePtr Parameter(int at) const { return At(parameters_, at); }
  static DevicePtr At(DevicePtr base, int at) {
    return base + static_cast<DevicePtr>(at) * sizeof(float);
  }

  Buffer Convolve(const Buffer& x, int weights, int bias, int in);
  Buffer ForwardBlock(Buffer input, const Layout::Block& where, Block* saved);
  Buffer BackwardBlock(Buffer dy, const Layout::Block& where, Block saved);
  Buffer Dense(const Buffer& x, int weights, int bias, int in, int out);
  /// The dense layers, the loss and all of their gradients; returns the gradient of `pooled`.
  Buffer Head(Buffer pooled, int start, DevicePtr loss, DevicePtr gradient);
  void BiasGradient(const Buffer& dy, int bias, int channels, int rows);
  void ConvolutionGradient(const Buffer& x, const Buffer& dy, int weights, int in);

  Device& device_;
  Shape shape_;
  Layout layout_;
  DeviceData data_;
  int map_;     // floats of a feature map
  int slices_;  // parts of the batch whose gradients are summed up apart
  DevicePtr parameters_ = 0;
  Buffer partial_;  // [slices_][layout_.sliced], during a backward pass
};

}  // namespace train
