// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/place_instances.h"

namespace sluice::bench {

/// One way to place one instance.
struct PlaceFigure {
  std::string method;
  uint64_t footprint = 0;
  double leased_over_least = 0;  // bytes leased over time, in units of 8 MiB
  double seconds = 0;            // of CPU time; it has one thread
};

struct PlaceRow {
  std::string name;
  size_t buffers = 0;
  uint64_t lower_bound = 0;       // the peak load
  PlaceFigure ours;               // as low as it gets, or below the capacity
  PlaceFigure ours_leased;        // by the other objective
  std::vector<PlaceFigure> fits;  // kRivals, in their order
  std::string missed;             // the goal that was missed; empty: none
};

/// Places and judges. A placement that is not valid ends the program.
PlaceRow MeasurePlacement(const PlaceInstance& instance);

/// Footprints over the lower bound with seconds, then bytes leased over time.
std::string PlaceTable(const std::vector<PlaceRow>& rows);
nlohmann::json PlaceJson(const std::vector<PlaceRow>& rows);

}  // namespace sluice::bench
