// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/report.h"

/// Runs the benchmarks interleaved, so that both sides of a ratio see the same machine, then prints
/// the ratios. `--json FILE` keeps them, `--area NAME` measures only what begins with NAME; every
/// other argument is google-benchmark's.
int main(int argc, char** argv) {
  std::string json_file;
  std::string area;
  std::string filter;
  std::string defaults[] = {"--benchmark_repetitions=9", "--benchmark_min_time=0.05",
                            "--benchmark_enable_random_interleaving=true"};
  std::vector<char*> arguments = {argv[0]};
  for (std::string& argument : defaults) arguments.push_back(argument.data());
  for (int i = 1; i < argc; ++i) {
    const bool json = std::strcmp(argv[i], "--json") == 0;
    if (!json && std::strcmp(argv[i], "--area") != 0) {
      arguments.push_back(argv[i]);
    } else if (++i < argc) {
      (json ? json_file : area) = argv[i];
    } else {
      std::fprintf(stderr, "sluice_bench: %s\n",
                   json ? "--json needs a file" : "--area needs a name");
      return 2;
    }
  }
  const std::vector<sluice::bench::Comparison> comparisons = sluice::bench::ComparisonsOf(area);
  if (comparisons.empty()) {
    std::fprintf(stderr, "sluice_bench: --area %s: nothing that is compared begins with that\n",
                 area.c_str());
    return 2;
  }
  if (!area.empty()) {
    filter = "--benchmark_filter=^" + area;
    arguments.push_back(filter.data());
  }
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;

  sluice::bench::CollectingReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  std::fputs(sluice::bench::RatioTable(reporter, comparisons).c_str(), stdout);
  if (!json_file.empty()) {
    std::ofstream file(json_file);
    file << sluice::bench::RatioJson(reporter, comparisons).dump(2) << '\n';
    if (!file.flush()) {
      std::fprintf(stderr, "sluice_bench: cannot write %s\n", json_file.c_str());
      return 1;
    }
  }
  return sluice::bench::GoalsMet(reporter, comparisons) ? 0 : 1;
}
