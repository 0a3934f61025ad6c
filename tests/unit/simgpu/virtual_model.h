// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "simgpu/sharing/virtual_time.h"

namespace sluice::simgpu {

/// What a process of the model does: computes, issues an operation of `ns` (which costs its clock
/// nothing), or waits for all that it has issued.
struct ModelAction {
  enum Kind : uint32_t { kCompute, kIssue, kAwait };
  Kind kind;
  uint64_t ns;
};
/// By process. Each has one context with one stream.
using ModelPrograms = std::vector<std::vector<ModelAction>>;

/// By process: the ends of its operations, then the clock after its last action.
using ModelTimes = std::vector<std::vector<uint64_t>>;

ModelPrograms RandomPrograms(std::mt19937* random);

/// One operation at a time over all contexts, none interrupted, turns of `quantum` ns.
FluidRules ModelRules(double quantum_ns);
std::unique_ptr<Fluid> EmptyFluid();

/// Played through VirtualTime, with processes and executors that do what real ones do.
ModelTimes TimesOfCore(const ModelPrograms& programs, uint64_t quantum_ns);
/// The same by going through time nanosecond by nanosecond.
ModelTimes TimesOfReference(const ModelPrograms& programs, uint64_t quantum_ns);

}  // namespace sluice::simgpu
