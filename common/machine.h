// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "common/gpu_shares.h"
#include "common/status.h"

namespace sluice {

/// Declared duration of a kernel: base_ns + per_thread_ns * threads of the launch.
struct KernelCost {
  double base_ns = 5000;
  double per_thread_ns = 0.05;
};

/// Which parts of the GPU's peaks a kernel reaches when it runs alone, from 0 to 1.
struct KernelBound {
  double flops = 1;
  double bandwidth = 0;
};

/// How several programs share the SMs.
enum class Sharing : uint32_t {
  kTimeSlice,  // one context at a time
  kMps,        // max-min by SM share, then by memory bandwidth
};

/// What limits the SM share of a kernel under kMps.
enum class SharingVariant : uint32_t {
  kOccupancy,  // a kernel that runs long enough fills the GPU
  kRoofline,   // and no kernel takes more of the SMs than of the peak FLOPs
};

/// How one GPU and its driver behave: the simulated GPU's parameters, and those of simulations of
/// schedules. Read from a file of `key = value` lines; docs/design/simulated-gpu.md lists the keys.
/// All times are simulated nanoseconds.
struct Machine {
  std::string name = "Sluice simulated GPU";
  std::string driver = "580.65.06";  // version, as NVML has it
  int compute_capability = 80;       // times ten
  uint64_t memory = 0;               // bytes; 0: said elsewhere
  uint64_t sm_count = 1;
  uint64_t threads_per_sm = 0;
  uint64_t clock_khz = 1'000'000;
  uint64_t memory_clock_khz = 1'000'000;
  uint64_t bus_bits = 0;
  uint64_t l2_bytes = 0;
  double flops_per_s = 0;           // peak, single precision; 0: unknown
  uint64_t memory_bytes_per_s = 0;  // peak; 0: unknown

  bool virtual_time = false;        // the clock follows from what was issued, not from real time
  uint64_t participants = 1;        // processes that share a virtual time
  uint64_t query_ns = 500;          // in virtual time: CPU time of asking whether work is over
  double time_scale = 1;            // real seconds per simulated second
  uint64_t launch_queue = 1024;     // outstanding operations per context
  uint64_t launch_ns = 5000;        // CPU time of issuing one operation
  uint64_t alloc_ns = 0;            // CPU time of one stream-ordered allocation or free
  uint64_t concurrent_kernels = 1;  // of one context at a time
  uint64_t copy_engines = 0;        // 0: copies and kernels of a context take turns
  uint64_t granularity = 2u << 20;  // VMM granularity and growth step of the memory pool
  uint64_t context_bytes = 4u << 20;
  uint64_t copy_bytes_per_s = 12'000'000'000;  // host link, one direction
  uint64_t peer_bytes_per_s = 0;  // link between two such GPUs, one direction; 0: as the host link
  uint64_t memset_bytes_per_s = 200'000'000'000;
  KernelCost default_cost;
  std::map<std::string, KernelCost, std::less<>> cost;
  std::map<std::string, uint64_t, std::less<>> delay;

  // Sharing between contexts.
  Sharing sharing = Sharing::kTimeSlice;
  SharingVariant sharing_variant = SharingVariant::kOccupancy;
  uint64_t quantum_ns = 2'000'000;  // time slice when several want the GPU
  uint64_t switch_ns = 0;           // GPU time that a change of the context costs
  uint64_t fill_ns = 50'000;        // a kernel of this length takes all SMs
  double least_share = 0.1;         // of the SMs, for the shortest kernels
  std::map<std::string, KernelBound, std::less<>> bound;

  // CPU time of calls that change mappings; one of them at a time on the whole GPU if `serialised`.
  uint64_t create_ns = 0;
  uint64_t map_ns = 0;
  uint64_t set_access_ns = 0;
  uint64_t unmap_ns = 0;
  uint64_t register_ns = 0;
  uint64_t register_ns_per_mib = 0;
  bool serialised = false;

  bool sources_required = false;
  std::map<std::string, std::string, std::less<>> sources;  // by key: where the value is from

  /// Declared duration of one launch, injected delay included.
  uint64_t KernelNs(std::string_view kernel, double threads) const;
  /// The same of a launch that says itself how long it lasts.
  uint64_t DeclaredNs(std::string_view kernel, uint64_t ns) const;
  uint64_t CopyNs(uint64_t bytes) const;
  /// From one GPU to another.
  uint64_t PeerCopyNs(uint64_t bytes) const;
  uint64_t MemsetNs(uint64_t bytes) const;
  /// Within the GPU's memory: read and written. As a copy over the host link if the bandwidth of
  /// the memory is unknown.
  uint64_t DeviceCopyNs(uint64_t bytes) const;
  /// What a kernel that takes `ns` alone asks of the GPU.
  GpuDemand Demand(std::string_view kernel, uint64_t ns) const;
  /// The same for a kernel that reaches such parts of the peaks.
  GpuDemand DemandOf(const KernelBound& reached, double ns) const;
  /// Whether operations of several contexts, or of one, may be under way at the same time.
  bool overlaps() const {
    return sharing == Sharing::kMps || copy_engines > 0 || concurrent_kernels > 1;
  }
};

/// `origin` names the file in errors, which name the line, the key and what is allowed.
Result<Machine> ParseMachine(std::string_view text, std::string_view origin);

/// The keys with their values and where they are from, as a file could say them.
std::string DescribeMachine(const Machine& machine);

}  // namespace sluice
