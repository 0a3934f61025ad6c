// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "examples/train/trainer.h"

#include <cmath>
#include <cstring>

#include "examples/train/layout.h"
#include "examples/train/network.h"

namespace train {
namespace {

constexpr unsigned kThreads = 256;
constexpr double kBeta1 = 0.9, kBeta2 = 0.999;

DevicePtr Upload(DriverDevice& device, const void* data, size_t bytes) {
  // Pinned, so that the copy may still be under way when this returns.
  void* staging = device.AllocateHost(bytes);
  std::memcpy(staging, data, bytes);
  const DevicePtr block = device.AllocatePersistent(bytes);
  device.CopyIn(block, staging, bytes);
  return block;
}

template <class T>
DevicePtr Upload(DriverDevice& device, const std::vector<T>& values) {
  return Upload(device, values.data(), values.size() * sizeof(T));
}

/// The parameters and what the optimizer remembers of each.
class Parameters {
 public:
  Parameters(DriverDevice& device, const Options& options, const Layout& layout)
      : device_(device), options_(options), count_(layout.total) {
    values_ = Upload(device, InitialParameters(options.shape, layout, options.seed));
    first_ = Zeros();
    if (options.optimizer == Optimizer::kAdam) second_ = Zeros();
  }

  DevicePtr get() const { return values_; }

  void Update(DevicePtr gradient, int iteration) {
    const float rate = static_cast<float>(options_.learning_rate);
    if (options_.optimizer == Optimizer::kSgd) {
      device_.Launch("sgd", count_, kThreads, values_, first_, gradient, rate,
                     static_cast<float>(options_.momentum), count_);
      return;
    }
    const auto correction = [&](double beta) {
      return static_cast<float>(1.0 - std::pow(beta, iteration + 1));
    };
    device_.Launch("adam", count_, kThreads, values_, first_, second_, gradient, rate,
                   static_cast<float>(kBeta1), static_cast<float>(kBeta2), correction(kBeta1),
                   correction(kBeta2), count_);
  }

 private:
  DevicePtr Zeros() {
    const DevicePtr block = device_.AllocatePersistent(static_cast<size_t>(count_) * sizeof(float));
    device_.Fill(block, 0, static_cast<size_t>(count_));
    return block;
  }

  DriverDevice& device_;
  const Options& options_;
  int count_;
  DevicePtr values_ = 0, first_ = 0, second_ = 0;
};

/// Losses on their way from the GPU: one slot of pinned memory and one event per iteration under
/// way.
class LossRing {
 public:
  LossRing(DriverDevice& device, int slots)
      : device_(device),
        losses_(static_cast<volatile float*>(
            device.AllocateHost(static_cast<size_t>(slots) * sizeof(float)))) {
    for (int i = 0; i < slots; ++i) events_.push_back(device.NewEvent());
  }

  void Send(int iteration, DevicePtr loss) {
    const size_t slot = Slot(iteration);
    device_.CopyOut(const_cast<float*>(losses_) + slot, loss, sizeof(float));
    device_.Record(events_[slot]);
  }
  float Receive(int iteration) {
    const size_t slot = Slot(iteration);
    device_.Wait(events_[slot]);
    return losses_[slot];
  }

 private:
  size_t Slot(int iteration) const { return static_cast<size_t>(iteration) % events_.size(); }

  DriverDevice& device_;
  volatile float* losses_;
  std::vector<CUevent> events_;
};

}  // namespace

void Train(DriverDevice& device, const Options& options, const Digits& digits,
           const std::function<void(int, float)>& report) {
  const DeviceData data = {Upload(device, digits.images), Upload(device, digits.labels),
                           Upload(device, ShuffledOrder(digits.samples(), options.seed)),
                           digits.samples()};
  Network network(device, options.shape, data);
  Parameters parameters(device, options, network.layout());
  LossRing losses(device, options.print_lag);

  int start = 0;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    const int printed = iteration - options.print_lag;
    if (printed >= 0) report(printed, losses.Receive(printed));
    const Network::Outcome outcome = network.Run(parameters.get(), start);
    parameters.Update(outcome.gradient.get(), iteration);
    losses.Send(iteration, outcome.loss.get());
    start = (start + options.shape.batch) % digits.samples();
  }
  for (int i = std::max(0, options.iterations - options.print_lag); i < options.iterations; ++i) {
    report(i, losses.Receive(i));
  }
  device.WaitForAll();
}

}  // namespace train
