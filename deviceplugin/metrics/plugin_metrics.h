// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/metrics/family.h"
#include "deviceplugin/metrics/figures.h"
#include "deviceplugin/server/offer.h"

namespace sluice::deviceplugin {

/// What of the node is counted anew for each scrape.
struct NodeCounts {
  std::vector<Gpu> gpus;
  std::vector<Offer::Counts> devices;  // by GPU
  std::optional<size_t> grants;        // nothing: they cannot be read just now
};

/// The plugin, as Prometheus reads it. `node`: the node's name.
std::vector<prometheus::MetricFamily> MetricsOf(const std::string& node, const Figures& figures,
                                                const NodeCounts& counts);

/// What that has, for the page.
std::vector<metrics::Group> MetricGroups();

}  // namespace sluice::deviceplugin
