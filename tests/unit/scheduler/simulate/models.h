// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/simulate/simulate.h"
#include "scheduler/trace/builder.h"

namespace sluice::scheduler::simulate {

/// One FLOP or byte takes one nanosecond, so that durations can be read off a model.
inline Machine PlainMachine() {
  Machine machine;
  machine.name = "plain";
  machine.flops_per_s = 1e9;
  machine.memory_bytes_per_s = 1'000'000'000;
  machine.default_cost = {1, 0};
  machine.launch_ns = 10;
  machine.alloc_ns = 0;
  machine.sharing = Sharing::kMps;
  machine.fill_ns = 100;
  machine.least_share = 0.1;
  return machine;
}

/// A network of layers: each keeps a feature map from its forward pass to its backward pass, which
/// updates the parameters.
struct Layers {
  std::vector<uint64_t> bytes;  // of the feature maps
  std::vector<uint64_t> flops;  // of one pass; the duration in nanoseconds
  uint64_t parameters = 8;      // bytes
};

inline trace::Trace TraceOf(const Layers& layers) {
  using trace::BlockKind;
  trace::TraceBuilder builder;
  const auto must = [](const Status& status) { ASSERT_TRUE(status.ok()) << status.message(); };
  must(builder.AddBlock({BlockKind::kPersistent, {layers.parameters, 0}}));
  for (const uint64_t bytes : layers.bytes) {
    must(builder.AddBlock({BlockKind::kTransient, {bytes, 0}}));
  }
  const auto pass = [&](size_t i, trace::Phase phase) {
    trace::Operator op;
    op.name = "layer";
    op.phase = phase;
    op.flops = {layers.flops[i], 0};
    op.reads = {0};
    if (phase == trace::Phase::kForward) {
      if (i > 0) op.reads.push_back(static_cast<trace::BlockId>(i));
      op.writes = {static_cast<trace::BlockId>(i + 1)};
    } else {
      op.reads.push_back(static_cast<trace::BlockId>(i + 1));
      op.writes = {0};
    }
    must(builder.AddOperator(op));
  };
  for (size_t i = 0; i < layers.bytes.size(); ++i) {
    must(builder.Alloc(i + 1));
    pass(i, trace::Phase::kForward);
  }
  for (size_t i = layers.bytes.size(); i-- > 0;) {
    pass(i, trace::Phase::kBackward);
    must(builder.Free(i + 1));
  }
  return builder.Finish().value();
}

/// With units of 8 bytes and gates wherever memory changes.
inline WorkloadOptions FineGates() {
  WorkloadOptions options;
  options.unit_bytes = 8;
  options.gates.max_gates = 128;
  options.gates.groups_per_peak = 1000;
  options.gates.placing = Placing::kPacked;
  return options;
}

inline Workload WorkloadOf(const std::string& name, const Layers& layers,
                           const Machine& machine = PlainMachine(),
                           Touched touched = Touched::kNothing) {
  WorkloadOptions options = FineGates();
  options.touched = touched;
  return MakeWorkload(name, TraceOf(layers), 1, machine, options).value();
}

/// Up to ten layers of up to 15 units each.
inline Layers RandomLayers(std::mt19937* random) {
  const auto pick = [random](uint32_t bound) { return (*random)() % bound; };
  Layers layers;
  const size_t count = 2 + pick(9);
  for (size_t i = 0; i < count; ++i) {
    layers.bytes.push_back(8 * (1 + pick(15)));
    layers.flops.push_back(20 + pick(400));
  }
  layers.parameters = 8 * (1 + pick(6));
  return layers;
}

}  // namespace sluice::scheduler::simulate
