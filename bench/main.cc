// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "bench/report.h"

/// Runs the benchmarks interleaved, so that both sides of a ratio see the same machine, then prints
/// the ratios. `--json FILE` keeps them; every other argument is google-benchmark's.
int main(int argc, char** argv) {
  std::string json_file;
  std::string defaults[] = {"--benchmark_repetitions=9", "--benchmark_min_time=0.05",
                            "--benchmark_enable_random_interleaving=true"};
  std::vector<char*> arguments = {argv[0]};
  for (std::string& argument : defaults) arguments.push_back(argument.data());
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") != 0) {
      arguments.push_back(argv[i]);
    } else if (++i < argc) {
      json_file = argv[i];
    } else {
      std::fprintf(stderr, "sluice_bench: --json needs a file\n");
      return 2;
    }
  }
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;

  sluice::bench::CollectingReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  std::fputs(sluice::bench::RatioTable(reporter).c_str(), stdout);
  if (!json_file.empty()) {
    std::ofstream file(json_file);
    file << sluice::bench::RatioJson(reporter).dump(2) << '\n';
    if (!file.flush()) {
      std::fprintf(stderr, "sluice_bench: cannot write %s\n", json_file.c_str());
      return 1;
    }
  }
  return sluice::bench::GoalsMet(reporter) ? 0 : 1;
}
