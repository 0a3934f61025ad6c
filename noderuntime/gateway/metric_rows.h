// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "common/metrics/family.h"
#include "noderuntime/gateway/job_view.h"

/// What rows of tables are made of.
namespace sluice::gateway {

using metrics::Family;
constexpr metrics::Type kGauge = metrics::Type::kGauge;
constexpr metrics::Type kCounter = metrics::Type::kCounter;
constexpr metrics::Type kHistogram = metrics::Type::kHistogram;

/// A figure as it is, a time in its base unit, a histogram.
template <typename View>
auto Plain(Figure View::*figure) {
  return [figure](const View& view, Family* family) { family->Add(view.*figure); };
}
template <typename View>
auto Seconds(Figure View::*ns) {
  return [ns](const View& view, Family* family) { family->Add(view.*ns, 1e-9); };
}
template <typename View>
auto Times(std::optional<metrics::Histogram> View::*histogram) {
  return [histogram](const View& view, Family* family) { family->Add(view.*histogram); };
}
/// A sample for each name that is counted.
template <typename View>
auto Each(const char* label, ByReason View::*counts) {
  return [label, counts](const View& view, Family* family) {
    if (!(view.*counts).has_value()) return;
    for (const auto& [name, count] : *(view.*counts)) {
      family->Add(static_cast<double>(count), {{label, metrics::LabelValue(name)}});
    }
  };
}

}  // namespace sluice::gateway
