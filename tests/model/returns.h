// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

/// Whether something that lasts ends: a walk through the states in which it lasts, and how often
/// others begin an iteration on the way.
namespace sluice::scheduler::model {

/// A step between two states of that kind.
struct Passage {
  uint32_t from = 0;
  uint32_t to = 0;
  bool begins = false;  // somebody begins an iteration in it
};

struct Bound {
  /// False: a walk comes back to where it was, and somebody begins an iteration each time.
  bool bounded = true;
  uint32_t at = 0;      // then: such a state
  uint32_t begins = 0;  // else: the most iterations that begin on any walk
};

/// Over all walks. With no cycle in which an iteration begins, there are finitely many begins in
/// any walk: the longest path through the strongly connected components (Tarjan, SIAM J. Comput.
/// 1(2), 1972).
Bound MostBegins(const std::vector<Passage>& passages);

}  // namespace sluice::scheduler::model
