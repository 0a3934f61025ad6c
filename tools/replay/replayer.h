// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/cuda/client_device.h"
#include "tools/replay/launch_table.h"
#include "tools/replay/plan.h"
#include "tools/replay/report.h"
#include "tools/replay/writers.h"

namespace sluice::replay {

/// How much of each block is filled and checked.
enum class Pattern { kFull, kSparse, kOff };

struct RunOptions {
  uint64_t iterations = 10;  // at least 1
  uint64_t ahead = 4;        // at least 1: iterations that the CPU may be ahead of the GPU
  uint64_t sync_every = 0;   // wait for the GPU behind each so many iterations; 0: never
  uint64_t gap_ns = 0;       // the program computes before each iteration
  Pattern pattern = Pattern::kFull;
  std::optional<BlockId> corrupt;  // its first word is spoilt behind each launch that writes it
};

/// Runs a plan as a client of the driver, on one stream. One thread.
class Replayer {
 public:
  /// Loads the kernel, and allocates the blocks that are kept. Throws what `device` throws.
  Replayer(cuda::ClientDevice& device, const Plan& plan, const RunOptions& options);

  /// Once. Throws what `device` throws.
  Report Run();

 private:
  void Iterate(uint64_t iteration);
  void Issue(uint64_t iteration, uint32_t index);
  /// Fills the table's next rows for a launch.
  void Describe(uint64_t iteration, uint32_t index);
  void Spoil(uint32_t index);
  /// Waits for an iteration, whose rows of the table are free then, and notes how long it took.
  void Finish(uint64_t iteration);
  CUevent EndOf(uint64_t iteration) const { return events_[(iteration + 1) % events_.size()]; }
  CUevent BeginOf(uint64_t iteration) const { return events_[iteration % events_.size()]; }

  cuda::ClientDevice& device_;
  const Plan& plan_;
  const RunOptions options_;
  const uint64_t stride_;         // in words
  std::vector<unsigned> slices_;  // of each launch: columns of its grid
  std::vector<CUdeviceptr> addresses_;
  Writers writers_;
  BlockWork* tables_ = nullptr;  // pinned: plan.uses rows for each iteration under way
  BlockWork* next_row_ = nullptr;
  CUdeviceptr counts_ = 0;
  std::vector<CUevent> events_;
  Report report_;
};

}  // namespace sluice::replay
