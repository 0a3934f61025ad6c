// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include "intercept/protocol/page_access.h"

namespace sluice {

/// Follows the launches of the pacing stream through the published cycle. Pure: no driver, no
/// clock. The caller holds the state lock. Until it knows where in the cycle it is, it looks at the
/// last launches after each one; from then on at those at the end of each cycle.
class Matcher {
 public:
  /// What a launch led to. At most one of the three, apart from `gate` with nothing.
  struct Step {
    bool at_trough;  // the cycle is complete: gate 0 is here (kAfterLast) or before the next launch
    bool mismatch;   // the cycle was not followed: there is no profile from here on
    uint32_t gate;   // index of a gate > 0 that stands after this launch, else 0
    uint32_t launch_ns;  // profiled GPU time of this launch, 0 when it has no known place
  };

  constexpr Matcher() = default;

  /// Starts to look for the cycle. `profile` stays where it is; null: no profile. `history` has
  /// room for profile->window function ids. False when the profile makes no sense; it is then
  /// ignored.
  bool Follow(const protocol::ProfileImage* profile, uint64_t* history);

  Step OnLaunch(uint64_t function_id);

  bool following() const { return profile_ != nullptr; }
  bool synchronised() const { return synchronised_; }
  const protocol::ProfileImage* profile() const { return profile_; }
  /// Gate 0 is due before the next launch (kBeforeFirst). Cleared by the one who goes through it.
  bool TakePendingTrough();
  /// The most units that the current group needs; only when synchronised.
  uint32_t need_units() const { return profile_->gates[gate_].need_units; }
  uint32_t gate() const { return gate_; }  // the last one passed

 private:
  void Push(uint64_t function_id);
  bool AtTroughHash() const { return seed_part_ + sum_ == profile_->trough_hash; }

  const protocol::ProfileImage* profile_ = nullptr;
  uint64_t* history_ = nullptr;  // the last `window` ids, a ring
  uint64_t sum_ = 0;             // polynomial over the last launches, without the seed
  uint64_t seed_part_ = 0;       // kHashSeed * multiplier^window
  uint64_t oldest_weight_ = 0;   // multiplier^window
  uint32_t seen_ = 0;            // launches since the start, at most `window`
  uint32_t next_ = 0;            // place in the ring
  uint32_t ordinal_ = 0;         // launches of this cycle so far
  uint32_t hashed_from_ = 0;     // `ordinal_` at the first of those that its hash is made of
  uint32_t gate_ = 0;            // the last gate passed
  bool synchronised_ = false;
  bool pending_trough_ = false;
};

}  // namespace sluice
