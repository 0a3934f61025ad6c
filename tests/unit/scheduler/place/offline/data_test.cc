// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "scheduler/place/offline/exact.h"
#include "scheduler/place/offline/fit.h"
#include "scheduler/place/offline/from_trace.h"
#include "scheduler/place/offline/instance.h"
#include "scheduler/place/offline/solve.h"
#include "scheduler/trace/parse.h"
#include "tests/unit/scheduler/trace/trace_files.h"

namespace sluice::scheduler {
namespace {

Instance Read(const std::string& name) {
  const char* folder = std::getenv("SLUICE_TEST_PLACEMENT");
  std::ifstream file(std::string(folder != nullptr ? folder : "data/placement") + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  Result<Instance> read = ParseInstance(text.str());
  EXPECT_TRUE(read.ok()) << name << ": " << read.status().message();
  return read.ok() ? *read : Instance();
}

constexpr uint64_t kCapacity = 1'048'576;

class MiniMalloc : public ::testing::TestWithParam<const char*> {};

TEST_P(MiniMalloc, IsPlacedAtItsCapacityAndFarFromItByFits) {
  const Instance instance = Read(std::string("minimalloc/") + GetParam() + ".csv");
  ASSERT_GT(instance.buffers.size(), 100u);
  for (const FitHole hole : {FitHole::kFirst, FitHole::kBest}) {
    const Offsets offsets = PlaceByFit(instance.buffers, FitOrder::kSize, hole);
    EXPECT_GT(Footprint(instance.buffers, offsets), kCapacity);
  }
  constexpr uint64_t kNodes = 5'000'000;  // E takes half of it, the others a tenth of that
  uint64_t asked = 0;
  const ExactResult result = PlaceExactly(instance.buffers, kCapacity,
                                          [&] { return ++asked * kNodesPerQuestion < kNodes; });
  ASSERT_EQ(result.outcome, ExactResult::Outcome::kPlaced) << result.nodes;
  EXPECT_EQ(ValidatePlacement(instance.buffers, result.offsets, kCapacity).message(), "");
}

INSTANTIATE_TEST_SUITE_P(Data, MiniMalloc, ::testing::Values("A", "B", "C", "D", "E", "F"),
                         [](const auto& name) { return std::string(name.param); });

TEST(PlacementData, TheLargeOneIsPlacedWithinOnePerCentOfItsPeak) {
  const Instance instance = Read("idealloc/S_1.csv");
  ASSERT_EQ(instance.buffers.size(), 28'526u);
  const uint64_t peak = PeakLoad(instance.buffers);
  EXPECT_EQ(peak, 1'498'635'932u);
  const Offsets offsets = PlaceByFit(instance.buffers, FitOrder::kTime, FitHole::kBest);
  const uint64_t height = Footprint(instance.buffers, offsets);
  EXPECT_EQ(ValidatePlacement(instance.buffers, offsets, height).message(), "");
  EXPECT_LE(height, peak + peak / 100);
}

void ExpectWithinHalfAPerCent(const trace::Trace& trace, uint64_t batch,
                              const PlaceEffort& effort) {
  const Result<Instance> instance = InstanceOf(trace, batch, 1);
  ASSERT_TRUE(instance.ok()) << instance.status().message();
  ASSERT_GT(instance->buffers.size(), 500u);
  PlaceRequest request;
  request.buffers = instance->buffers;
  request.effort = effort;
  const Result<PlaceAnswer> answer = SolvePlacement(request);
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  const uint64_t peak = PeakLoad(instance->buffers);
  const uint64_t allowed = peak + peak / 200;
  EXPECT_EQ(ValidatePlacement(instance->buffers, answer->offsets, allowed).message(), "")
      << "batch " << batch << ", " << answer->method;
}

struct TraceCase {
  const char* model;
  uint64_t large;  // the largest batch that a card of 28 GiB holds, by the peak and what stays
  PlaceEffort effort = kQuickEffort;
};

class Traces : public ::testing::TestWithParam<TraceCase> {};

TEST_P(Traces, ArePlacedWithinHalfAPerCentOfTheirPeak) {
  const auto read = trace::ParseTrace(trace::ReadTraceFile(GetParam().model));
  ASSERT_TRUE(read.ok()) << read.status().message();
  for (const uint64_t batch : {uint64_t{32}, GetParam().large}) {
    ExpectWithinHalfAPerCent(*read, batch, GetParam().effort);
  }
}

// The fits suffice, but for gnmt at small batches.
constexpr PlaceEffort kTwoEndsEffort = {60'000'000, 1'000'000};

INSTANTIATE_TEST_SUITE_P(
    Data, Traces,
    ::testing::Values(TraceCase{"resnet50", 344}, TraceCase{"resnet152", 165},
                      TraceCase{"inception_v3", 300}, TraceCase{"nasnetalarge", 28},
                      TraceCase{"bert-base", 175}, TraceCase{"tacotron2", 1521},
                      TraceCase{"resnet110", 3563}, TraceCase{"gnmt", 1028, kTwoEndsEffort},
                      TraceCase{"rhn", 2840}),
    [](const auto& chosen) {
      std::string name = chosen.param.model;
      std::erase(name, '-');
      return name;
    });

// Where large buffers take turns at the peak, which depends on the batch.
TEST(PlacementData, OtherBatchesAreNoWorse) {
  for (const auto& [model, batches] :
       {std::pair{"gnmt", std::vector{24u, 40u, 48u}}, std::pair{"tacotron2", std::vector{48u}}}) {
    const auto read = trace::ParseTrace(trace::ReadTraceFile(model));
    ASSERT_TRUE(read.ok()) << read.status().message();
    for (const uint64_t batch : batches) ExpectWithinHalfAPerCent(*read, batch, kTwoEndsEffort);
  }
}

}  // namespace
}  // namespace sluice::scheduler
