// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/gpu_shares.h"
#include "common/machine.h"
#include "common/status.h"
#include "scheduler/ledger/types.h"
#include "scheduler/profile/gates.h"
#include "scheduler/profile/profile.h"
#include "scheduler/trace/trace.h"

namespace sluice::scheduler::simulate {

/// One launch of an iteration.
struct Kernel {
  double alone_ns = 0;  // GPU time when nothing runs beside it
  GpuDemand demand;
  uint32_t calls = 0;  // allocations and frees that the host makes since the launch before
};

struct WorkloadOptions {
  uint64_t unit_bytes = uint64_t{8} << 20;
  /// No margin: in the model blocks are packed, and a run repeats its trace.
  GateOptions gates = {.margin_part = 0};
  double gap_ns = 0;  // the host computes something else at the trough (loading data)
};

/// A job of the model: one iteration, which repeats itself.
struct Workload {
  std::string name;
  std::vector<Kernel> kernels;  // in the order of their launches; at least one
  uint32_t calls_after = 0;     // of the host, behind the last launch
  CyclePlan plan;               // in units, base included
  Units base_units = 0;         // held at the trough
  uint64_t base_bytes = 0;
  uint64_t peak_bytes = 0;  // most that lives at once, base included
  double gap_ns = 0;
  double alone_ns = 0;  // sum over the kernels
};

/// What the profiler would measure of the trace at this batch, exactly. GPU time of an operator:
/// max(flops / peak, bytes / bandwidth, machine.default_cost.base_ns), as if it reached one of the
/// machine's peaks (the roofline model: Williams et al., CACM 52(4), 2009).
Result<Profile> ProfileOf(const trace::Trace& trace, uint64_t batch, const Machine& machine);

/// The trace at this batch as a job on `machine`. kInvalidArgument: the batch (trace/at_batch.h), a
/// trace without operators, a machine whose peaks are unknown.
Result<Workload> MakeWorkload(std::string name, const trace::Trace& trace, uint64_t batch,
                              const Machine& machine, const WorkloadOptions& options = {});

}  // namespace sluice::scheduler::simulate
