// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/flow/held_by_gate.h"

#include <algorithm>

namespace sluice::flow {

using scheduler::Units;

namespace {

constexpr size_t kRemembered = 16;
constexpr size_t kEnough = 2;

}  // namespace

void HeldByGate::Begin(size_t gates, Units units, bool whole) {
  whole_ = whole;
  now_.assign(std::max<size_t>(gates, 1), 0);
  now_.front() = last_ = units;
  gate_ = 0;
}

void HeldByGate::Reach(size_t gate, Units units) {
  // What fell meanwhile fell somewhere on the way.
  const Units most = std::max(units, last_);
  for (gate = std::min(gate, now_.size() - 1); gate_ < gate;) now_[++gate_] = most;
  last_ = units;
}

void HeldByGate::Hold(Units units) {
  now_[gate_] = std::max(now_[gate_], units);
  last_ = units;
}

void HeldByGate::End() {
  if (whole_) return;
  if (past_.size() >= kRemembered) past_.pop_front();
  for (size_t k = now_.size() - 1; k-- > 0;) now_[k] = std::max(now_[k], now_[k + 1]);
  past_.push_back(now_);
}

bool HeldByGate::known() const { return !whole_ && past_.size() >= kEnough; }

Units HeldByGate::From(size_t gate) const {
  Units most = 0;
  for (const std::vector<Units>& from : past_) {
    most = std::max(most, from[std::min(gate, from.size() - 1)]);
  }
  return most;
}

}  // namespace sluice::flow
