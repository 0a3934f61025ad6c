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
#include "scheduler/simulate/touches.h"
#include "scheduler/trace/at_batch.h"
#include "scheduler/trace/trace.h"

namespace sluice::scheduler::simulate {

/// One launch of an iteration, or several that are looked at as one (Coarse).
struct Kernel {
  double alone_ns = 0;  // GPU time when nothing runs beside it
  GpuDemand demand;
  uint32_t calls = 0;  // allocations and frees that the host makes since the launch before
  double host_ns = 0;  // what else the host does since then
  uint32_t launches = 1;
};

/// Whose touches a workload knows, for a simulation in which memory is paged (Options::paging).
/// They are many where batches are large: a row for every 2 MiB that a kernel reads.
enum class Touched : uint8_t {
  kNothing,  // it cannot be paged
  kBlocks,   // a block that was freed is gone (TouchesOf)
  kKept,     // the framework keeps what it frees (KeptTouchesOf, blocks of 2 MiB)
};

inline constexpr uint64_t kClientGranuleBytes = 512;  // intercept/blocks

struct WorkloadOptions {
  uint64_t unit_bytes = uint64_t{8} << 20;
  /// In the model blocks are packed, unless it is to ask for as much as a node.
  GateOptions gates = {.placing = Placing::kPacked};
  double gap_ns = 0;  // the host computes something else at the trough (loading data)
  /// A block takes whole multiples of this; a live client's of kClientGranuleBytes, which is
  /// nothing where blocks are large.
  uint64_t granule_bytes = 1;
  Touched touched = Touched::kNothing;
};

/// A job of the model: one iteration, which repeats itself.
struct Workload {
  std::string name;
  std::vector<Kernel> kernels;  // in the order of their launches; at least one
  uint32_t calls_after = 0;     // of the host, behind the last launch
  CyclePlan plan;               // in units, base included
  Units base_units = 0;         // held at the trough
  Units limit = 0;              // it may hold no more; 0: what the bases of the others leave
  uint64_t base_bytes = 0;
  uint64_t peak_bytes = 0;  // most that lives at once, base included
  double gap_ns = 0;
  double alone_ns = 0;  // sum over the kernels
  Touches touches;      // by WorkloadOptions::touched
};

/// What the profiler would measure of the trace at this batch, exactly. GPU time of an operator:
/// max(flops / peak, bytes / bandwidth, machine.default_cost.base_ns), as if it reached one of the
/// machine's peaks (the roofline model: Williams et al., CACM 52(4), 2009); of a measured one
/// (trace/measured.h): what was measured.
Result<Profile> ProfileOf(const trace::Trace& trace, uint64_t batch, const Machine& machine);

/// The same time of each of its operators, in their order; Profile::launch_ns has what 32 bits hold
/// of it.
std::vector<double> LaunchTimes(const trace::BatchTrace& at, const Machine& machine);

/// The trace at this batch as a job on `machine`. kInvalidArgument: the batch (trace/at_batch.h), a
/// trace without operators, a machine whose peaks are unknown (unless the trace was measured).
Result<Workload> MakeWorkload(std::string name, const trace::Trace& trace, uint64_t batch,
                              const Machine& machine, const WorkloadOptions& options = {});

/// A live job on a GPU that its programs use in turns, by the profile and the gates that it goes
/// by: what of its kernels would fit beside others' is not known. `iteration_ns`: from trough to
/// trough by the clock, without waits for memory: the host is taken to need all of it, evenly, and
/// goes on while its GPU works. 0: not known, and it needs none. kInvalidArgument: the profile has
/// no launches or the plan no gates.
Result<Workload> LiveWorkload(std::string name, const Profile& profile, const CyclePlan& plan,
                              uint64_t unit_bytes, double iteration_ns);

/// As a node with a pool of so many units has them, which lets jobs begin as long as what lives
/// fits: what a gate asks for beyond that ends at the job's limit and where the bases of the others
/// begin. Whether one of them has less than it asks for.
bool WithinPool(std::vector<Workload>* jobs, Units pool_units, uint64_t unit_bytes);

/// The same job with about `most` kernels (more where it has more gates), each of which stands for
/// a few that follow each other between two gates: for a search that looks at many ways of sharing
/// and at none of them closely.
Workload Coarse(const Workload& workload, size_t most);

}  // namespace sluice::scheduler::simulate
