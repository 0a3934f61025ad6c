// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/gpu_shares.h"

#include <algorithm>
#include <cstddef>

namespace sluice {

namespace {

/// A handful at a time, so that looking for the least again and again beats sorting.
void MaxMinInto(std::span<const double> demands, double capacity, std::vector<double>* parts) {
  constexpr double kWaits = -1;
  parts->assign(demands.size(), kWaits);
  double left = std::max(capacity, 0.0);
  for (size_t waiting = demands.size(); waiting > 0; --waiting) {
    // Those who ask for least first: what they leave of an equal part is for the others.
    size_t least = demands.size();
    for (size_t i = 0; i < demands.size(); ++i) {
      if ((*parts)[i] != kWaits) continue;
      if (least == demands.size() || demands[i] < demands[least]) least = i;
    }
    const double equal = left / static_cast<double>(waiting);
    (*parts)[least] = std::min(std::max(demands[least], 0.0), equal);
    left = std::max(left - (*parts)[least], 0.0);
  }
}

}  // namespace

std::vector<double> MaxMin(std::span<const double> demands, double capacity) {
  std::vector<double> parts;
  MaxMinInto(demands, capacity, &parts);
  return parts;
}

const std::vector<double>& RateSharer::Rates(std::span<const GpuDemand> demands) {
  wanted_.resize(demands.size());
  for (size_t i = 0; i < demands.size(); ++i) wanted_[i] = demands[i].sm;
  MaxMinInto(wanted_, 1, &parts_);
  rates_.assign(demands.size(), 1);
  for (size_t i = 0; i < demands.size(); ++i) {
    if (demands[i].sm > 0) rates_[i] = parts_[i] / demands[i].sm;
    wanted_[i] = demands[i].bandwidth * rates_[i];
  }
  MaxMinInto(wanted_, 1, &parts_);
  for (size_t i = 0; i < demands.size(); ++i) {
    if (wanted_[i] > 0) rates_[i] *= parts_[i] / wanted_[i];
  }
  return rates_;
}

std::vector<double> SharedRates(std::span<const GpuDemand> demands) {
  return RateSharer().Rates(demands);
}

}  // namespace sluice
