// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/ledger/types.h"
#include "scheduler/profile/profile.h"

/// From a measured cycle to gates and credit. Groups of launches that take or give about the same
/// amount of memory are Waterwave's node groups (Shi et al., 4.3 and 4.4: split_size); here they
/// are cut from a launch sequence instead of a compute graph. The bound on launch-ahead is Zico's
/// (Lim et al., 6.1), in GPU time instead of a number of kernels, so that it needs no setting per
/// model.
namespace sluice::scheduler {

/// A place of the cycle where the client may have to wait, and what the group behind it needs.
struct GatePlan {
  uint32_t launch = 0;   // after this many launches of the cycle were issued; 0: the trough
  Units need_units = 0;  // most the job holds until the next gate, with what placing takes
  Units contiguous = 0;  // its largest block in units: the longest run it asks for there
};

struct CyclePlan {
  std::vector<GatePlan> gates;  // gate 0 first
  Units peak_units = 0;         // the largest need_units
  Units piece_units = 0;        // the largest contiguous
  uint64_t credit_ns = 0;       // GPU time that the CPU may run ahead
};

/// How a job's blocks lie in what it leases, and so what a gate asks for beyond what is live.
enum class Placing : uint8_t {
  kPacked,  // nothing: sums decide, as in a model that knows no places
  kRuns,  // each a run of the pool, placed as it comes: a thirty-second of what is live and a unit
  /// Put together of units that lie apart, as on a node by default. They end inside units, and what
  /// is left there is of use to few others: a thirty-second and one to six units
  /// (docs/adr/0037).
  kPieces,
};

/// "packed", "runs", "pieces".
std::string_view PlacingName(Placing placing);
std::vector<std::string> PlacingNames();
std::optional<Placing> FindPlacing(std::string_view name);

struct GateOptions {
  /// Where there would be more, neighbours are joined where that costs least. So placed, these lend
  /// about as much as all, and each may be a question to the daemon (docs/adr/0029).
  uint32_t max_gates = 48;
  /// Before that, a group takes or gives about this part of the peak; 0 is as 1.
  uint32_t groups_per_peak = 100;
  Placing placing = Placing::kRuns;
};

/// The part of an iteration that a CPU may run ahead of its GPU, unless something else is tried.
inline constexpr uint32_t kCreditParts = 8;

/// A `parts`-th (0 is as 1) of the iteration's GPU time, at most 5 ms, which it is where the
/// profile is not timed.
uint64_t CreditFor(const Profile& profile, uint32_t parts = kCreditParts);

/// Cuts the cycle into groups of about the same amount, growing or falling. Where these are more
/// than `max_gates`, two neighbours become one where that makes the job hold least, in units times
/// its GPU time, until they are so many (greedy, from below). `profile` is timed or not (then every
/// launch counts the same, and the credit is the largest). No gates when its period, `unit_bytes`
/// or `max_gates` is 0.
CyclePlan PlanGates(const Profile& profile, uint64_t unit_bytes, const GateOptions& options = {});

/// The same plan where no gate asks for more than `limit`, as a node has it whose job may hold no
/// more: what a gate asks for beyond what is live need not be there.
CyclePlan WithinLimit(CyclePlan plan, Units limit);

}  // namespace sluice::scheduler
