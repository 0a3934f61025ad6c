// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/gpu_shares.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace sluice {

std::vector<double> MaxMin(std::span<const double> demands, double capacity) {
  std::vector<double> shares(demands.size(), 0);
  std::vector<size_t> order(demands.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Those who ask for least first: what they leave of an equal part is for the others.
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return demands[a] < demands[b]; });
  double left = std::max(capacity, 0.0);
  size_t waiting = order.size();
  for (const size_t i : order) {
    const double equal = left / static_cast<double>(waiting--);
    shares[i] = std::min(std::max(demands[i], 0.0), equal);
    left = std::max(left - shares[i], 0.0);
  }
  return shares;
}

std::vector<double> SharedRates(std::span<const GpuDemand> demands) {
  std::vector<double> wanted(demands.size());
  for (size_t i = 0; i < demands.size(); ++i) wanted[i] = demands[i].sm;
  const std::vector<double> sms = MaxMin(wanted, 1);
  std::vector<double> rates(demands.size(), 1);
  for (size_t i = 0; i < demands.size(); ++i) {
    if (demands[i].sm > 0) rates[i] = sms[i] / demands[i].sm;
    wanted[i] = demands[i].bandwidth * rates[i];
  }
  const std::vector<double> bytes = MaxMin(wanted, 1);
  for (size_t i = 0; i < demands.size(); ++i) {
    if (wanted[i] > 0) rates[i] *= bytes[i] / wanted[i];
  }
  return rates;
}

}  // namespace sluice
