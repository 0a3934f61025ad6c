// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/solve.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "scheduler/place/offline/exact.h"
#include "scheduler/place/offline/fit.h"
#include "scheduler/place/offline/leased.h"
#include "scheduler/place/offline/repair.h"
#include "scheduler/place/offline/sections.h"
#include "scheduler/place/offline/two_ends.h"

namespace sluice::scheduler {
namespace {

// Orders from which first fit is repaired; the other two are too far from good.
constexpr std::array kRepairedOrders = {FitOrder::kSize, FitOrder::kQuarter, FitOrder::kHalf,
                                        FitOrder::kArea};
constexpr uint64_t kCloseEnough = 4096;  // part of the lower bound, where no capacity is given
constexpr int kTrialRounds = 4;          // of each of them, before the best go on
constexpr size_t kRepairedLong = 2;      // of them
constexpr size_t kCheapExact = 512;      // buffers up to which nodes of the exact search are cheap
constexpr size_t kMostDived = 2048;      // and up to which some of them are affordable
constexpr uint64_t kDiveNodes = 4096;    // beyond one for each buffer, where they are not
constexpr uint64_t kExactSteps = 4;      // capacities that are tried where none is given
constexpr size_t kMostSplit = 8192;    // buffers up to which all ways to split them are affordable
constexpr uint64_t kTwoEndsSteps = 6;  // capacities for each way

// One request on its way.
class Solver {
 public:
  explicit Solver(const PlaceRequest& request)
      : request_(request), buffers_(request.buffers), left_(request.effort) {
    best_.lower_bound = PeakLoad(buffers_);
  }

  PlaceAnswer Solve() {
    TryFits();
    if (Enough()) return std::move(best_);
    if (buffers_.size() <= kCheapExact) {
      SearchExactly();
      RepairFits();
      return std::move(best_);
    }
    if (buffers_.size() <= kMostDived) {
      TryExactly(Goal(), std::min(left_.nodes, kDiveNodes + buffers_.size()));
    }
    if (buffers_.size() <= kMostSplit) SearchFromTwoEnds();
    RepairFits();
    if (request_.capacity.has_value()) {
      TryExactly(Goal(), left_.nodes * kCheapExact / buffers_.size());
    }
    return std::move(best_);
  }

 private:
  struct Fit {
    FitOrder order;
    std::vector<uint32_t> sequence;
    Offsets offsets;
  };

  /// What need not be undercut.
  uint64_t Goal() const { return request_.capacity.value_or(Low()); }
  uint64_t Low() const { return best_.lower_bound + best_.lower_bound / kCloseEnough; }
  bool Reached() const { return has_best_ && best_.footprint <= Goal(); }
  /// Lower is no better where bytes leased count, as long as there is room; nor where it is proven
  /// that there never is.
  bool Enough() const {
    return Reached() || !Fits(best_.lower_bound) ||
           (request_.objective == PlaceObjective::kLeased && Fits(best_.footprint));
  }
  bool Fits(uint64_t footprint) const {
    return !request_.capacity.has_value() || footprint <= *request_.capacity;
  }

  void Offer(Offsets offsets, std::string method) {
    const uint64_t footprint = Footprint(buffers_, offsets);
    const bool by_lease = request_.objective == PlaceObjective::kLeased;
    const double leased = by_lease ? LeasedIntegral(buffers_, offsets, request_.unit_bytes) : 0;
    bool better = footprint < best_.footprint;
    if (!has_best_ || Fits(footprint) != Fits(best_.footprint)) {
      better = !has_best_ || Fits(footprint);
    } else if (by_lease && Fits(footprint) && leased != leased_) {
      better = leased < leased_;
    }
    if (!better) return;
    has_best_ = true;
    leased_ = leased;
    best_.footprint = footprint;
    best_.offsets = std::move(offsets);
    best_.method = std::move(method);
  }

  static std::string FitName(FitOrder order, FitHole hole) {
    return std::string(Name(order)) + ", " + std::string(Name(hole));
  }

  // Those by time always, for they cost next to nothing.
  void TryFits() {
    for (const FitOrder order : {FitOrder::kTime, FitOrder::kEnd}) {
      for (const FitHole hole : kFitHoles) {
        Offer(PlaceByFit(buffers_, order, hole), FitName(order, hole));
      }
    }
    const uint64_t most_looks = buffers_.size() * buffers_.size() / 2;
    for (const FitHole hole : kFitHoles) {
      for (const FitOrder order : kFitOrders) {
        if (order == FitOrder::kTime || order == FitOrder::kEnd) continue;
        if (most_looks > left_.looks) continue;
        if (request_.objective == PlaceObjective::kFootprint && best_.footprint <= Low()) return;
        std::vector<uint32_t> sequence = InOrder(buffers_, order);
        uint64_t looks = 0;
        Offsets offsets = PlaceInSequence(buffers_, sequence, hole, &looks);
        left_.looks -= looks;
        Offer(offsets, FitName(order, hole));
        const bool repaired = hole == FitHole::kFirst &&
                              std::find(kRepairedOrders.begin(), kRepairedOrders.end(), order) !=
                                  kRepairedOrders.end();
        if (repaired) fits_.push_back({order, std::move(sequence), std::move(offsets)});
      }
    }
  }

  void RepairFits() {
    if (Enough()) return;
    std::vector<std::pair<FitOrder, Repair>> repairs;
    for (Fit& fit : fits_) {
      const uint64_t seed = 1 + static_cast<uint64_t>(fit.order);
      repairs.emplace_back(fit.order,
                           Repair(buffers_, std::move(fit.sequence), std::move(fit.offsets), seed));
    }
    const uint64_t most_looks = buffers_.size() * buffers_.size() / 2;
    const uint64_t goal = Goal();
    const auto lowest = [](const auto& a, const auto& b) {
      return a.second.footprint() < b.second.footprint();
    };
    for (uint64_t round = 0; !repairs.empty() && left_.looks > most_looks; ++round) {
      if (round == kTrialRounds) {
        std::stable_sort(repairs.begin(), repairs.end(), lowest);
        while (repairs.size() > kRepairedLong) repairs.pop_back();
      }
      for (auto& [order, repair] : repairs) {
        left_.looks -= std::min(left_.looks, repair.Round(goal));
      }
      if (std::min_element(repairs.begin(), repairs.end(), lowest)->second.footprint() <= goal)
        break;
    }
    for (const auto& [order, repair] : repairs) {
      Offer(repair.offsets(), "repair of " + FitName(order, FitHole::kFirst));
    }
  }

  // At the capacity, or without one at the lower bound and then between it and the best.
  void SearchExactly() {
    if (request_.capacity.has_value()) return TryExactly(*request_.capacity, left_.nodes);
    const uint64_t nodes = left_.nodes / kExactSteps;
    Descend(best_.lower_bound, kExactSteps,
            [&](uint64_t capacity) { TryExactly(capacity, nodes); });
  }

  /// `attempt` at `low` and, while nothing is found so low, between where nothing was and the best;
  /// not for what is next to nothing.
  template <class Attempt>
  void Descend(uint64_t low, uint64_t steps, const Attempt& attempt) {
    for (uint64_t step = 0; step < steps && !Enough(); ++step) {
      const uint64_t capacity = step == 0 ? low : low + (best_.footprint - low) / 2;
      if (capacity + best_.lower_bound / kCloseEnough >= best_.footprint) return;
      attempt(capacity);
      if (best_.footprint > capacity) low = capacity;
    }
  }

  void SearchFromTwoEnds() {
    if (Enough() || left_.nodes == 0) return;
    const Sections sections(buffers_);
    for (const TwoEnds& split : LikelySplits(buffers_, sections)) {
      const auto attempt = [&](uint64_t capacity) { TryFromTwoEnds(split, capacity); };
      if (request_.capacity.has_value()) {
        attempt(*request_.capacity);
      } else {
        Descend(std::max(split.lowest(), Low()), kTwoEndsSteps, attempt);
      }
    }
  }

  void TryFromTwoEnds(const TwoEnds& split, uint64_t capacity) {
    if (Enough() || left_.nodes == 0) return;
    const ExactResult result = split.Place(capacity, left_.nodes);
    left_.nodes -= std::min(left_.nodes, result.nodes);
    if (result.outcome != ExactResult::Outcome::kPlaced) return;
    Offer(result.offsets, "two ends, small ones by " + std::string(Name(split.order())));
  }

  void TryExactly(uint64_t capacity, uint64_t nodes) {
    if (Enough() || nodes == 0) return;
    uint64_t asked = 0;
    const ExactResult result =
        PlaceExactly(buffers_, capacity, [&] { return (asked += kNodesPerQuestion) < nodes; });
    left_.nodes -= std::min(left_.nodes, result.nodes);
    if (result.outcome == ExactResult::Outcome::kPlaced) Offer(result.offsets, "exact");
    if (result.outcome == ExactResult::Outcome::kImpossible) {
      best_.lower_bound = std::max(best_.lower_bound, capacity + 1);
    }
  }

  const PlaceRequest& request_;
  std::span<const Buffer> buffers_;
  PlaceEffort left_;
  PlaceAnswer best_;
  bool has_best_ = false;
  double leased_ = 0;
  std::vector<Fit> fits_;
};

}  // namespace

Result<PlaceAnswer> SolvePlacement(const PlaceRequest& request) {
  if (Status status = CheckBuffers(request.buffers); !status.ok()) return status;
  if (request.unit_bytes == 0) {
    return Status(StatusCode::kInvalidArgument, "unit: is 0, but must be at least 1 byte");
  }
  return Solver(request).Solve();
}

}  // namespace sluice::scheduler
