// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/status.h"
#include "noderuntime/gpu/device.h"

namespace sluice::hosttier {

/// Pinned host memory in pieces of one size, so that no job needs one contiguous allocation and a
/// piece that one job gave back fits the next. Pieces given back are kept until they are freed:
/// locking memory is slow (the whole of it is cleared), and the loop that evicts serves everybody.
/// What is kept never exceeds the capacity, which is the host memory that was set aside for this.
///
/// Owns its pieces; `device` outlives it. Sizes in bytes. For one thread.
class PinnedPieces {
 public:
  /// Of the capacity, as many pieces as fit whole. `piece_bytes` > 0.
  PinnedPieces(gpu::Device* device, uint64_t capacity_bytes, uint64_t piece_bytes);
  /// No copy may be under way in any piece.
  ~PinnedPieces();
  PinnedPieces(const PinnedPieces&) = delete;
  PinnedPieces& operator=(const PinnedPieces&) = delete;

  uint64_t piece_bytes() const { return piece_bytes_; }
  uint64_t capacity_bytes() const { return pieces_ * piece_bytes_; }
  /// Of the pieces that were taken and not given back.
  uint64_t used_bytes() const { return taken_ * piece_bytes_; }
  bool HasRoom(uint64_t bytes) const { return Count(bytes) <= pieces_ - taken_; }

  /// Pieces for `bytes`, all or none. kResourceExhausted: beyond the capacity, or the machine has
  /// none left; then nothing that was allocated for it stays.
  Result<std::vector<std::byte*>> Take(uint64_t bytes);
  void GiveBack(const std::vector<std::byte*>& pieces);

  /// Whether there are pieces that are kept for the next job.
  bool keeps_spare() const { return !spare_.empty(); }
  /// Gives one of those to the machine.
  void FreeSpare();

 private:
  uint64_t Count(uint64_t bytes) const {
    return bytes / piece_bytes_ + (bytes % piece_bytes_ != 0 ? 1 : 0);
  }

  gpu::Device* device_;
  uint64_t piece_bytes_;
  uint64_t pieces_;
  uint64_t taken_ = 0;
  std::vector<std::byte*> spare_;  // allocated, and nobody's
};

}  // namespace sluice::hosttier
