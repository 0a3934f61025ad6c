// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/place/offline/buffers.h"
#include "scheduler/place/offline/exact.h"
#include "scheduler/place/offline/fit.h"
#include "scheduler/place/offline/sections.h"

namespace sluice::scheduler {

/// Places what is small from the top and what is large from the bottom. First fit stacks the small
/// ones in an order of time or life: there are many, and in such an order the stack is hardly
/// higher than what lives of them, at any time. So what it leaves to the large ones is nearly all
/// that they could have, in one piece, and they are few enough for the exact search. (One order for
/// all fails where large buffers take turns at a load near the peak: the small ones come to lie
/// between.)
class TwoEnds {
 public:
  /// Of checked buffers and their sections, which both outlive this. Large are those of
  /// `large_bytes` and more; the others are stacked in `order`.
  TwoEnds(std::span<const Buffer> buffers, const Sections& sections, uint64_t large_bytes,
          FitOrder order);

  FitOrder order() const { return order_; }

  /// How many are large.
  size_t large() const { return large_.size(); }

  /// Nothing of this kind is lower: the most that the stack and the large ones have at one time.
  uint64_t lowest() const { return lowest_; }

  /// All of them below `capacity`, and as much lower as the small ones can come down together.
  /// kImpossible: not with this stack. Gives up soon, and near `most_nodes`.
  ExactResult Place(uint64_t capacity, uint64_t most_nodes) const;

 private:
  std::vector<Buffer> StackAbove() const;

  std::span<const Buffer> buffers_;
  const Sections* sections_;
  FitOrder order_;
  std::vector<uint32_t> large_;
  std::vector<uint32_t> small_;
  Offsets depths_;               // of each small one: from the top
  std::vector<uint64_t> stack_;  // of each section: how far down the small ones reach
  uint64_t lowest_ = 0;
};

/// The ways worth trying, what can be lowest first: large from a 32nd of the peak load down to a
/// 2,048th of it, as long as there are few; small ones as they are freed, the last first, by life,
/// and as they are allocated. Both arguments outlive them. Quadratic in the number of buffers.
std::vector<TwoEnds> LikelySplits(std::span<const Buffer> buffers, const Sections& sections);

}  // namespace sluice::scheduler
