// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/bed.h"
#include "bench/report.h"
#include "noderuntime/cli/child.h"

/// The launch hook, measured from outside: the same program with the library and without it.
/// Without credit, which would make the program wait for the GPU on purpose.
namespace sluice::bench {
namespace {

Bed* SharedBed(std::string* error) {
  static std::string reason;
  static const std::unique_ptr<Bed> bed = [] {
    Result<std::unique_ptr<Bed>> started = Bed::Start({.flags = {"--credit", "off"}});
    if (!started.ok()) reason = started.status().message();
    return started.ok() ? std::move(*started) : nullptr;
  }();
  *error = reason;
  return bed.get();
}

void Launch(benchmark::State& state, bool under_sluice) {
  std::string error;
  Bed* bed = SharedBed(&error);
  if (bed == nullptr) {
    state.SkipWithError(error.c_str());
    return;
  }
  double median_ns = 0;
  for (auto _ : state) {
    cli::SpawnOptions spawn;
    spawn.environment = bed->environment();
    if (under_sluice) {
      spawn.argv = {bed->Program("sluice"), "run", "--runtime-dir", bed->runtime_dir(), "--"};
    }
    spawn.argv.push_back(bed->Program("launch_probe"));
    Result<cli::CommandOutput> output = cli::RunCommand(std::move(spawn));
    if (!output.ok() || !output->status.ok()) {
      error = output.ok() ? output->err : output.status().message();
      state.SkipWithError(error.c_str());
      return;
    }
    median_ns = std::stod(output->out);
    state.SetIterationTime(median_ns * 1e-9);
  }
  state.counters[kMedianCounter] = median_ns;
}

BENCHMARK_CAPTURE(Launch, with, true)->Name("launch/with_sluice")->UseManualTime()->Iterations(1);
BENCHMARK_CAPTURE(Launch, without, false)->Name("launch/without")->UseManualTime()->Iterations(1);

}  // namespace
}  // namespace sluice::bench
