// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/machine.h"
#include "common/status.h"
#include "scheduler/simulate/workload.h"

namespace sluice::bench {

/// Jobs on a kind of machine. A: large batches, kernels that leave to others what they do not use.
/// B: small batches. C: small batches, one context at a time, slow launches. Z and Y: large batches
/// where the GPU is full already, so that nothing is to be gained.
struct Regime {
  char name = 'A';
  Machine machine;
  double gate_ns = 0;  // Options::gate_ns
  std::map<std::string, scheduler::simulate::Workload> models;
};

inline constexpr uint64_t kFrontierUnit = uint64_t{8} << 20;

/// Of data/traces, at the regime's batches, with gates as on a node. An error names the file.
Result<Regime> MakeRegime(char name, uint32_t max_gates);

/// What runs together: two to four jobs, by the names of their models.
struct Mix {
  std::string name;
  std::vector<std::string> models;
};
const std::vector<Mix>& Mixes();

}  // namespace sluice::bench
