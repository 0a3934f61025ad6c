// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/place_instances.h"
#include "bench/place_report.h"
#include "noderuntime/cli/offline/files.h"

/// Prints how high everything is placed, and how long that takes; `--json FILE` keeps it. 1 when a
/// goal was missed.
int main(int argc, char** argv) {
  const bool json = argc == 3 && std::strcmp(argv[1], "--json") == 0;
  if (argc != 1 && !json) {
    std::fprintf(stderr, "usage: sluice_place_bench [--json FILE]\n");
    return 2;
  }
  const auto instances = sluice::bench::ReadPlaceInstances();
  if (!instances.ok()) {
    std::fprintf(stderr, "sluice_place_bench: %s\n", instances.status().message().c_str());
    return 1;
  }
  std::vector<sluice::bench::PlaceRow> rows;
  for (const auto& instance : *instances) {
    std::fprintf(stderr, "%s\n", instance.name.c_str());
    rows.push_back(sluice::bench::MeasurePlacement(instance));
  }
  std::fputs(sluice::bench::PlaceTable(rows).c_str(), stdout);
  if (json) {
    const std::string text = sluice::bench::PlaceJson(rows).dump(2) + "\n";
    if (const auto status = sluice::cli::WriteWholeFile(argv[2], text); !status.ok()) {
      std::fprintf(stderr, "sluice_place_bench: %s\n", status.message().c_str());
      return 1;
    }
  }
  const bool met =
      std::all_of(rows.begin(), rows.end(), [](const auto& row) { return row.missed.empty(); });
  return met ? 0 : 1;
}
