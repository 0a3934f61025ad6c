// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/place/offline/buffers.h"

namespace sluice::scheduler {

/// Makes the order in which first fit places buffers better, round by round. After each round some
/// of the buffers that stick out at the top move ahead, and the new order stays if it is no worse.
/// (Squeaky wheel optimization, Joslin and Clements, JAIR 10, 1999, section 2; there every order
/// stays.) What moves and how far is drawn from `seed`: equal arguments, equal rounds.
class Repair {
 public:
  /// `sequence` and where first fit put the checked buffers in this order.
  Repair(std::span<const Buffer> buffers, std::vector<uint32_t> sequence, Offsets offsets,
         uint64_t seed);

  /// Tries one more order on the way down to `goal`, and returns how often one buffer was held
  /// against another. Nothing is left to do when the footprint is `goal` or less.
  uint64_t Round(uint64_t goal);

  /// The best so far.
  const Offsets& offsets() const { return offsets_; }
  uint64_t footprint() const { return footprint_; }

 private:
  double Draw();  // in [0, 1)

  std::span<const Buffer> buffers_;
  std::vector<uint32_t> sequence_;
  Offsets offsets_;
  uint64_t footprint_;
  uint64_t state_;
};

}  // namespace sluice::scheduler
