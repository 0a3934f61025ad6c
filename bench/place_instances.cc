// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/place_instances.h"

#include <iterator>
#include <utility>

#include "noderuntime/cli/offline/files.h"
#include "scheduler/place/offline/from_trace.h"
#include "scheduler/trace/parse.h"

namespace sluice::bench {
namespace {

const std::string kData = SLUICE_BENCH_REPO_DATA;
constexpr uint64_t kMiniMallocCapacity = 1'048'576;

struct TraceChoice {
  const char* model;
  uint64_t large_batch;
};
// Of gnmt all but the first have several peaks of nearly one height.
constexpr uint64_t kSmallBatches[] = {8, 24, 32, 48};
// The largest batch with which parameters, batch and peak are at most 28 GiB.
constexpr TraceChoice kTraces[] = {{"resnet50", 344},    {"resnet152", 165}, {"inception_v3", 300},
                                   {"nasnetalarge", 28}, {"bert-base", 175}, {"tacotron2", 1521},
                                   {"resnet110", 3563},  {"gnmt", 1028},     {"rhn", 2840}};

Result<scheduler::Instance> ReadTable(const std::string& name) {
  const std::string path = kData + "/placement/" + name;
  const Result<std::string> text = cli::ReadWholeFile(path);
  if (!text.ok()) return text.status();
  Result<scheduler::Instance> read = scheduler::ParseInstance(*text);
  return read.ok() ? read : read.status().Annotate(path);
}

Status AddTraces(std::vector<PlaceInstance>* instances) {
  for (const auto& [model, large_batch] : kTraces) {
    const std::string path = kData + "/traces/" + model + ".trace";
    const Result<std::string> text = cli::ReadWholeFile(path);
    if (!text.ok()) return text.status();
    const Result<scheduler::trace::Trace> trace = scheduler::trace::ParseTrace(*text);
    if (!trace.ok()) return trace.status().Annotate(path);
    std::vector<uint64_t> batches(std::begin(kSmallBatches), std::end(kSmallBatches));
    batches.push_back(large_batch);
    for (const uint64_t batch : batches) {
      Result<scheduler::Instance> made = scheduler::InstanceOf(*trace, batch, 1);
      if (!made.ok()) return made.status().Annotate(path);
      instances->push_back({std::string(model) + " at " + std::to_string(batch),
                            std::move(made->buffers), std::nullopt, 1.005, 2});
    }
  }
  return {};
}

}  // namespace

Result<std::vector<PlaceInstance>> ReadPlaceInstances() {
  std::vector<PlaceInstance> instances;
  for (const char* name : {"A", "B", "C", "D", "E", "F"}) {
    Result<scheduler::Instance> read = ReadTable("minimalloc/" + std::string(name) + ".csv");
    if (!read.ok()) return read.status();
    instances.push_back({name, std::move(read->buffers), kMiniMallocCapacity, 0, 15});
  }
  Result<scheduler::Instance> large = ReadTable("idealloc/S_1.csv");
  if (!large.ok()) return large.status();
  instances.push_back({"S_1", std::move(large->buffers), std::nullopt, 1.01, 2});
  if (Status status = AddTraces(&instances); !status.ok()) return status;
  return instances;
}

}  // namespace sluice::bench
