// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/gate/matcher.h"

namespace sluice {
namespace {

// The part of FoldLaunch that depends on the launch.
constexpr uint64_t Term(uint64_t function_id) { return protocol::FoldLaunch(0, function_id); }

bool MakesSense(const protocol::ProfileImage& profile) {
  if (profile.period == 0 || profile.period > protocol::kMaxPeriodLaunches) return false;
  if (profile.window == 0 || profile.window > profile.period) return false;
  if (profile.pacing_slot >= protocol::kStreamSlots) return false;
  if (profile.gate_count == 0 || profile.gate_count > protocol::kMaxGates) return false;
  if (profile.trough_place != protocol::TroughPlace::kBeforeFirst &&
      profile.trough_place != protocol::TroughPlace::kAfterLast) {
    return false;
  }
  for (uint32_t i = 1; i < profile.gate_count; ++i) {
    const uint32_t before = i == 1 ? 0 : profile.gates[i - 1].launch;
    if (profile.gates[i].launch <= before || profile.gates[i].launch >= profile.period)
      return false;
  }
  return true;
}

}  // namespace

bool Matcher::Follow(const protocol::ProfileImage* profile, uint64_t* history) {
  *this = Matcher();
  if (profile == nullptr) return true;
  if (!MakesSense(*profile)) return false;
  profile_ = profile;
  history_ = history;
  oldest_weight_ = 1;
  for (uint32_t i = 0; i < profile->window; ++i) oldest_weight_ *= protocol::kHashMultiplier;
  seed_part_ = protocol::kHashSeed * oldest_weight_;
  hashed_from_ = profile->period - profile->window;
  return true;
}

// sum = term(1) * m^(w-1) + ... + term(w): the new one is folded in, the oldest drops out.
inline void Matcher::Push(uint64_t function_id) {
  sum_ = sum_ * protocol::kHashMultiplier + Term(function_id);
  if (seen_ == profile_->window) {
    sum_ -= Term(history_[next_]) * oldest_weight_;
  } else {
    ++seen_;
  }
  history_[next_] = function_id;
  next_ = next_ + 1 == profile_->window ? 0 : next_ + 1;
}

bool Matcher::TakePendingTrough() {
  const bool pending = pending_trough_;
  pending_trough_ = false;
  return pending;
}

Matcher::Step Matcher::OnLaunch(uint64_t function_id) {
  Step step{};
  if (profile_ == nullptr) return step;
  if (synchronised_) {
    step.launch_ns = profile_->launch_ns[ordinal_];
    if (ordinal_ >= hashed_from_) sum_ = protocol::FoldLaunch(sum_, function_id);
    ++ordinal_;
    if (ordinal_ < profile_->period) {
      const uint32_t next = gate_ + 1;
      if (next < profile_->gate_count && profile_->gates[next].launch == ordinal_) {
        gate_ = next;
        step.gate = next;
      }
      return step;
    }
    if (!AtTroughHash()) {
      *this = Matcher();
      step.mismatch = true;
      return step;
    }
  } else {
    Push(function_id);
    if (seen_ < profile_->window || !AtTroughHash()) return step;
  }
  synchronised_ = true;
  ordinal_ = 0;
  gate_ = 0;
  sum_ = 0;
  step.at_trough = true;
  pending_trough_ = profile_->trough_place == protocol::TroughPlace::kBeforeFirst;
  return step;
}

}  // namespace sluice
