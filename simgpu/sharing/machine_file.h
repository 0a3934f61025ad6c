// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "common/status.h"

namespace sluice::simgpu {

/// Declared duration of a kernel: base_ns + per_thread_ns * threads of the launch.
struct KernelCost {
  double base_ns = 5000;
  double per_thread_ns = 0.05;
};

/// How one simulated GPU behaves. Read from a file of `key = value` lines (`#` starts a comment);
/// docs/design/simulated-gpu.md lists the keys. All times are simulated nanoseconds.
struct Machine {
  std::string name = "Sluice simulated GPU";
  int compute_capability = 80;      // times ten
  double time_scale = 1;            // real seconds per simulated second
  uint64_t launch_queue = 1024;     // outstanding operations per context
  uint64_t launch_ns = 5000;        // CPU time of issuing one operation
  uint64_t quantum_ns = 2'000'000;  // time slice when several processes want the GPU
  uint64_t granularity = 2u << 20;  // VMM granularity and growth step of the memory pool
  uint64_t context_bytes = 4u << 20;
  uint64_t copy_bytes_per_s = 12'000'000'000;
  uint64_t memset_bytes_per_s = 200'000'000'000;
  uint64_t create_ns = 0;  // VMM call costs
  uint64_t map_ns = 0;
  uint64_t set_access_ns = 0;
  uint64_t unmap_ns = 0;
  KernelCost default_cost;
  std::map<std::string, KernelCost, std::less<>> cost;
  std::map<std::string, uint64_t, std::less<>> delay;

  /// Declared duration of one launch, injected delay included.
  uint64_t KernelNs(std::string_view kernel, double threads) const;
  uint64_t CopyNs(uint64_t bytes) const;
  uint64_t MemsetNs(uint64_t bytes) const;
};

/// `origin` names the file in errors, which name the line, the key and what is allowed.
Result<Machine> ParseMachine(std::string_view text, std::string_view origin);
Result<Machine> ReadMachineFile(const std::string& path);

}  // namespace sluice::simgpu
