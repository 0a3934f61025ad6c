// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/figures/held_history.h"

#include <algorithm>

namespace sluice::figures {
namespace {

/// The larger of both for each job; both by job.
void Raise(std::vector<Holding>* most, const std::vector<Holding>& by) {
  for (const Holding& holding : by) {
    const auto at = std::lower_bound(
        most->begin(), most->end(), holding.job,
        [](const Holding& known, scheduler::JobId job) { return known.job < job; });
    if (at != most->end() && at->job == holding.job) {
      at->units = std::max(at->units, holding.units);
    } else {
      most->insert(at, holding);
    }
  }
}

}  // namespace

/// What was held at the end of the last step was held in those after it.
void HeldHistory::GoTo(uint64_t number) {
  if (!steps_.empty() && steps_.back().number < number && steps_.back().most != now_) {
    steps_.push_back({steps_.back().number + 1, now_});
  }
  // The oldest one that is left says what was held until the next one.
  while (steps_.size() > 1 && number - steps_[1].number >= kSteps) steps_.pop_front();
}

void HeldHistory::Note(uint64_t now_ns, const std::vector<Holding>& holdings) {
  if (holdings == now_) return;
  const uint64_t number = now_ns / kStepNs;
  GoTo(number);
  if (steps_.empty() || steps_.back().number < number) steps_.push_back({number, now_});
  Raise(&steps_.back().most, holdings);
  now_ = holdings;
}

std::vector<const HeldHistory::Step*> HeldHistory::Since(uint64_t number, uint64_t now_ns) {
  GoTo(now_ns / kStepNs);
  std::vector<const Step*> since;
  for (const Step& step : steps_) {
    if (step.number >= number) since.push_back(&step);
  }
  return since;
}

}  // namespace sluice::figures
