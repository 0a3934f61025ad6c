// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <vector>

#include "scheduler/ledger/types.h"

namespace sluice::scheduler::audit {

inline constexpr size_t kMaxParties = 6;

/// A job past its gate, as I3 sees it. Sets of units are one flag per unit: slow, and nothing to
/// get wrong.
struct Party {
  JobId job = kNoJob;
  Units need = 0;
  Units piece = kWholeClaim;
  bool returns = false;
  std::vector<bool> gives_back;
  std::vector<bool> may_keep = {};  // units of its base that it does not hold now; empty: none
};

/// I3 by trying every order; at most kMaxParties parties, since each more multiplies the cost. All
/// sets of units have the pool's length. Written without the greedy argument of scheduler/safety on
/// purpose: a mistake in that argument has to show here.
bool SomeOrderCompletes(const std::vector<bool>& available, const std::vector<Party>& parties,
                        bool in_sums);

}  // namespace sluice::scheduler::audit
