// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <span>
#include <vector>

namespace sluice {

/// What an operation would take of a GPU if it were alone: parts from 0 to 1.
struct GpuDemand {
  double sm = 1;
  double bandwidth = 0;
};

/// Max-min fair parts of `capacity`: nobody gets more than asked for, the sum is at most the
/// capacity, all of it is given away if enough is asked for, and nobody could get more without
/// taking from somebody who has less.
std::vector<double> MaxMin(std::span<const double> demands, double capacity);

/// How fast operations run side by side, each as a part of its speed alone: first the SMs are
/// shared max-min, then the bandwidth that the operations want at the speed which that allows.
std::vector<double> SharedRates(std::span<const GpuDemand> demands);

/// The same for whoever asks at every kernel: it keeps its memory from one answer to the next.
class RateSharer {
 public:
  /// Valid until the next call.
  const std::vector<double>& Rates(std::span<const GpuDemand> demands);

 private:
  std::vector<double> wanted_;
  std::vector<double> parts_;
  std::vector<double> rates_;
};

}  // namespace sluice
