// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/hosttier/pinned_pieces.h"

#include "common/bytes.h"

namespace sluice::hosttier {

PinnedPieces::PinnedPieces(gpu::Device* device, uint64_t capacity_bytes, uint64_t piece_bytes)
    : device_(device), piece_bytes_(piece_bytes), pieces_(capacity_bytes / piece_bytes) {}

PinnedPieces::~PinnedPieces() {
  for (std::byte* piece : spare_) device_->FreeHost(piece);
}

Result<std::vector<std::byte*>> PinnedPieces::Take(uint64_t bytes) {
  if (!HasRoom(bytes)) {
    return Status(StatusCode::kResourceExhausted,
                  FormatBytes(bytes) + " have no room in host memory: " +
                      FormatBytes(used_bytes()) + " of " + FormatBytes(capacity_bytes()) + " used");
  }
  const uint64_t count = Count(bytes);
  const size_t spare_before = spare_.size();
  while (spare_.size() < count) {
    const Result<std::byte*> piece = device_->AllocateHost(piece_bytes_);
    if (!piece.ok()) {
      // A machine that is short of memory gets back what this call took.
      while (spare_.size() > spare_before) {
        device_->FreeHost(spare_.back());
        spare_.pop_back();
      }
      return piece.status();
    }
    spare_.push_back(*piece);
  }
  const auto first = spare_.end() - static_cast<std::ptrdiff_t>(count);
  std::vector<std::byte*> pieces(first, spare_.end());
  spare_.erase(first, spare_.end());
  taken_ += count;
  return pieces;
}

void PinnedPieces::GiveBack(const std::vector<std::byte*>& pieces) {
  spare_.insert(spare_.end(), pieces.begin(), pieces.end());
  taken_ -= pieces.size();
}

void PinnedPieces::FreeSpare() {
  if (spare_.empty()) return;
  device_->FreeHost(spare_.back());
  spare_.pop_back();
}

}  // namespace sluice::hosttier
