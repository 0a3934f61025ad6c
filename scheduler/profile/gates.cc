// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/profile/gates.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace sluice::scheduler {

namespace {

constexpr uint64_t kMaxCreditNs = 5'000'000;
constexpr std::array<std::string_view, 3> kPlacings = {"packed", "runs", "pieces"};
/// Of what is live, for blocks that are placed as they come.
constexpr uint64_t kMarginPart = 32;
/// In pieces a unit for each so many that are live, one at least and so many at most: where little
/// lives, few blocks end.
constexpr uint64_t kUnitsPerMarginUnit = 16;
constexpr uint64_t kMostMarginUnits = 6;

/// What happens between two places where a gate may stand: stretch j follows the issue of j
/// launches.
struct Stretch {
  uint64_t most_live = 0;
  uint64_t largest = 0;
  uint64_t level = 0;  // live where the gate before it would stand
};

std::vector<Stretch> Stretches(const Profile& profile) {
  const uint32_t period = profile.period;
  const bool after_last = profile.trough_place == TroughPlace::kAfterLast;
  std::vector<Stretch> stretches(period);
  // From the trough to the first launch: nothing at kBeforeFirst; at kAfterLast all that follows
  // the last launch.
  stretches[0] = {profile.live_before[0], 0, profile.base_bytes};
  if (after_last) {
    stretches[0].most_live = profile.max_live[period - 1];
    stretches[0].largest = profile.largest_alloc[period - 1];
  }
  for (uint32_t j = 1; j < period; ++j) {
    stretches[j] = {profile.max_live[j - 1], profile.largest_alloc[j - 1],
                    profile.live_before[j - 1]};
  }
  if (!after_last) {  // what follows the last launch has no gate of its own
    stretches[period - 1].most_live =
        std::max(stretches[period - 1].most_live, profile.max_live[period - 1]);
    stretches[period - 1].largest =
        std::max(stretches[period - 1].largest, profile.largest_alloc[period - 1]);
  }
  return stretches;
}

uint64_t Distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

Units RoundUp(uint64_t bytes, uint64_t unit_bytes) {
  return static_cast<Units>((bytes + unit_bytes - 1) / unit_bytes);
}

/// What a job of so many live bytes is taken to hold.
Units NeedOf(uint64_t live, uint64_t unit_bytes, Placing placing) {
  if (placing == Placing::kPacked) return RoundUp(live, unit_bytes);
  const uint64_t most = placing == Placing::kPieces ? kMostMarginUnits : 1;
  const uint64_t units = std::clamp<uint64_t>(live / unit_bytes / kUnitsPerMarginUnit, 1, most);
  return RoundUp(live + live / kMarginPart, unit_bytes) + static_cast<Units>(units);
}

/// A gate, and how long it is to the next one.
struct Piece {
  GatePlan gate;
  double ns = 0;  // of GPU time, alone; launches where that is not known
};

/// A group ends when memory has grown or fallen by `size`, when it has come down from a peak inside
/// the group, and before a jump, so that nothing is asked for long before it is needed.
std::vector<Piece> Cut(const Profile& profile, uint64_t size, uint64_t unit_bytes,
                       Placing placing) {
  struct Group {
    Stretch most;
    Piece piece;
  };
  const std::vector<Stretch> stretches = Stretches(profile);
  const bool timed = profile.timed;
  std::vector<Group> groups;
  for (uint32_t j = 0; j < profile.period; ++j) {
    const Stretch& stretch = stretches[j];
    const bool cut = groups.empty() || Distance(stretch.level, groups.back().most.level) >= size ||
                     groups.back().most.most_live >= stretch.most_live + size ||
                     stretch.most_live >= groups.back().most.most_live + size;
    if (cut) groups.push_back({{0, 0, stretch.level}, {{.launch = j}, 0}});
    Group& group = groups.back();
    group.most.most_live = std::max(group.most.most_live, stretch.most_live);
    group.most.largest = std::max(group.most.largest, stretch.largest);
    // A timer that is too coarse for a launch does not make it cost nothing.
    group.piece.ns += timed ? std::max(profile.launch_ns[j], 1u) : 1;
  }
  std::vector<Piece> pieces;
  for (Group& group : groups) {
    GatePlan& gate = group.piece.gate;
    gate.contiguous = RoundUp(group.most.largest, unit_bytes);
    gate.need_units = std::max(gate.contiguous, NeedOf(group.most.most_live, unit_bytes, placing));
    pieces.push_back(group.piece);
  }
  return pieces;
}

/// What holding the more of two neighbours in both costs: units times time.
double CostOfOne(const Piece& a, const Piece& b) {
  const Units most = std::max(a.gate.need_units, b.gate.need_units);
  return (most - a.gate.need_units) * a.ns + (most - b.gate.need_units) * b.ns;
}

/// One of two neighbours, where that costs least, until no more than so many are left.
std::vector<GatePlan> Join(std::vector<Piece> pieces, size_t most) {
  const size_t end = pieces.size();
  std::vector<size_t> next(end);
  std::vector<size_t> before(end);
  std::set<std::pair<double, size_t>> costs;  // of a piece with the next one
  const auto pair_of = [&](size_t at) {
    return std::pair(CostOfOne(pieces[at], pieces[next[at]]), at);
  };
  for (size_t at = 0; at < end; ++at) {
    next[at] = at + 1;
    before[at] = at - 1;  // never asked of the first
    if (next[at] < end) costs.insert(pair_of(at));
  }
  for (size_t left = end; left > most && !costs.empty(); --left) {
    const size_t at = costs.begin()->second;
    const size_t other = next[at];
    if (at > 0) costs.erase(pair_of(before[at]));
    if (next[other] < end) costs.erase(pair_of(other));
    costs.erase(costs.begin());
    GatePlan& gate = pieces[at].gate;
    gate.need_units = std::max(gate.need_units, pieces[other].gate.need_units);
    gate.contiguous = std::max(gate.contiguous, pieces[other].gate.contiguous);
    pieces[at].ns += pieces[other].ns;
    next[at] = next[other];
    if (next[at] < end) before[next[at]] = at;
    if (at > 0) costs.insert(pair_of(before[at]));
    if (next[at] < end) costs.insert(pair_of(at));
  }
  std::vector<GatePlan> gates;
  for (size_t at = 0; at < end; at = next[at]) gates.push_back(pieces[at].gate);
  return gates;
}

}  // namespace

std::string_view PlacingName(Placing placing) { return kPlacings[static_cast<size_t>(placing)]; }

std::vector<std::string> PlacingNames() { return {kPlacings.begin(), kPlacings.end()}; }

std::optional<Placing> FindPlacing(std::string_view name) {
  const auto* const found = std::find(kPlacings.begin(), kPlacings.end(), name);
  if (found == kPlacings.end()) return std::nullopt;
  return static_cast<Placing>(found - kPlacings.begin());
}

uint64_t CreditFor(const Profile& profile, uint32_t parts) {
  if (!profile.timed || profile.iteration_ns == 0) return kMaxCreditNs;
  return std::min(kMaxCreditNs, profile.iteration_ns / std::max(parts, 1u));
}

CyclePlan PlanGates(const Profile& profile, uint64_t unit_bytes, const GateOptions& options) {
  CyclePlan plan;
  plan.credit_ns = CreditFor(profile);
  if (profile.period == 0 || unit_bytes == 0 || options.max_gates == 0) return plan;
  const uint64_t part = profile.peak_bytes / std::max(options.groups_per_peak, 1u);
  plan.gates = Join(Cut(profile, std::max<uint64_t>(part, 1), unit_bytes, options.placing),
                    options.max_gates);
  for (const GatePlan& gate : plan.gates) {
    plan.peak_units = std::max(plan.peak_units, gate.need_units);
    plan.piece_units = std::max(plan.piece_units, gate.contiguous);
  }
  plan.piece_units = std::max<Units>(plan.piece_units, 1);
  return plan;
}

CyclePlan WithinLimit(CyclePlan plan, Units limit) {
  for (GatePlan& gate : plan.gates) {
    gate.need_units = std::min(gate.need_units, limit);
    gate.contiguous = std::min(gate.contiguous, limit);
  }
  plan.peak_units = std::min(plan.peak_units, limit);
  plan.piece_units = std::min(plan.piece_units, std::max<Units>(limit, 1));
  return plan;
}

}  // namespace sluice::scheduler
