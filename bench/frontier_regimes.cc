// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/frontier_regimes.h"

#include <utility>

#include "noderuntime/cli/offline/files.h"
#include "scheduler/trace/parse.h"

namespace sluice::bench {
namespace {

struct Model {
  const char* name;
  uint64_t large;  // base and peak are 28 GiB together
  uint64_t small;
};
constexpr Model kModels[] = {{"resnet50", 344, 2},     {"resnet152", 165, 2},
                             {"inception_v3", 300, 4}, {"nasnetalarge", 28, 2},
                             {"bert-base", 175, 1},    {"tacotron2", 1521, 32}};

/// V100, as data/traces counts its times: at least 5 us a kernel; launches take 6 us.
Machine MachineOf(char regime) {
  Machine machine;
  machine.name = "V100-like";
  machine.flops_per_s = 15.7e12;
  machine.memory_bytes_per_s = 900'000'000'000;
  machine.default_cost = {5000, 0};
  machine.alloc_ns = 200;
  machine.launch_ns = regime == 'C' ? 15000 : 6000;
  machine.launch_queue = 1024;
  const bool slices = regime == 'C' || regime == 'Y';
  machine.sharing = slices ? Sharing::kTimeSlice : Sharing::kMps;
  machine.sharing_variant = regime == 'A' ? SharingVariant::kRoofline : SharingVariant::kOccupancy;
  return machine;
}

}  // namespace

Result<Regime> MakeRegime(char name, uint32_t max_gates) {
  Regime regime;
  regime.name = name;
  regime.machine = MachineOf(name);
  scheduler::simulate::WorkloadOptions options;
  options.unit_bytes = kFrontierUnit;
  options.gates.max_gates = max_gates;
  const bool large = name == 'A' || name == 'Z' || name == 'Y';
  for (const Model& model : kModels) {
    const std::string file = std::string(SLUICE_BENCH_REPO_DATA "/traces/") + model.name + ".trace";
    const Result<std::string> text = cli::ReadWholeFile(file);
    if (!text.ok()) return text.status();
    const auto trace = scheduler::trace::ParseTrace(*text);
    if (!trace.ok()) return trace.status().Annotate(file);
    auto workload = scheduler::simulate::MakeWorkload(
        model.name, *trace, large ? model.large : model.small, regime.machine, options);
    if (!workload.ok()) return workload.status().Annotate(file);
    regime.models.emplace(model.name, *std::move(workload));
  }
  return regime;
}

const std::vector<Mix>& Mixes() {
  static const std::vector<Mix> mixes = {
      {"2 resnet50", {"resnet50", "resnet50"}},
      {"2 resnet152", {"resnet152", "resnet152"}},
      {"2 inception_v3", {"inception_v3", "inception_v3"}},
      {"2 nasnetalarge", {"nasnetalarge", "nasnetalarge"}},
      {"2 bert-base", {"bert-base", "bert-base"}},
      {"2 tacotron2", {"tacotron2", "tacotron2"}},
      {"resnet50 bert-base", {"resnet50", "bert-base"}},
      {"resnet50 tacotron2", {"resnet50", "tacotron2"}},
      {"bert-base tacotron2", {"bert-base", "tacotron2"}},
      {"3 resnet50", {"resnet50", "resnet50", "resnet50"}},
      {"4 resnet50", {"resnet50", "resnet50", "resnet50", "resnet50"}},
  };
  return mixes;
}

}  // namespace sluice::bench
