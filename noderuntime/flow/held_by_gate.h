// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "scheduler/ledger/types.h"

namespace sluice::flow {

/// How much a job really held on its way through its latest iterations. A profile knows what is
/// live; a search in an arena that has holes takes more. A value; not thread-safe.
class HeldByGate {
 public:
  /// An iteration with so many gates begins, holding `units`. `whole`: it gives nothing back on its
  /// way, so it tells nothing, and nothing is known while it lasts.
  void Begin(size_t gates, scheduler::Units units, bool whole);
  /// It has come to this gate, and not to the next one; until now it held `units`. Never goes back.
  void Reach(size_t gate, scheduler::Units units);
  /// More, where it stands.
  void Hold(scheduler::Units units);
  /// The iteration is over: unless it was a whole one it is remembered, and the oldest forgotten.
  void End();
  void Forget() { past_.clear(); }

  /// Enough is remembered to go by it.
  bool known() const;
  /// Most from that gate to the trough in the iterations that are remembered; 0: there are none.
  scheduler::Units From(size_t gate) const;

 private:
  std::vector<scheduler::Units> now_ = {0};  // [gate]: most up to the next one
  size_t gate_ = 0;                          // where it stands
  bool whole_ = false;
  scheduler::Units last_ = 0;                       // what it held when that was last said
  std::deque<std::vector<scheduler::Units>> past_;  // [gate]: most from there to the trough
};

}  // namespace sluice::flow
