// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <optional>
#include <vector>

#include "scheduler/policy/policy.h"

namespace sluice::bench {

/// Jobs with bases that lie interleaved, in `pieces` pieces in all, at one end of the pool; each
/// asks for runs of up to a 64th of the pool, so that where memory lies matters.
struct DecideShape {
  scheduler::JobId jobs = 8;
  scheduler::Units pool_units = 512;
  uint32_t pieces = 10;  // at most a quarter of the pool
};

/// A pool in which all jobs stand at their troughs with their bases, and who asks for what.
struct DecidePool {
  /// `eighths` of what the bases leave may one job use beside its base.
  DecidePool(const DecideShape& shape, scheduler::Units eighths);

  bool Waits(scheduler::JobId job) const;
  void Ask(scheduler::JobId job, scheduler::RequestKind kind, uint32_t gate, scheduler::Units need);
  /// kLow: what lies lowest first, which scatters what is kept. kMiddle: from the middle of the
  /// pool towards the job's own end, so that it stays compact.
  enum class From : uint8_t { kLow, kMiddle };
  /// All but `keep` and its base; nullopt: it has no more than that.
  std::optional<scheduler::ReleaseId> ReleaseTo(scheduler::JobId job, scheduler::Units keep,
                                                From from);
  /// Makes the decision, and takes an answered request off the list. Who asked: nobody for spare
  /// units that became free.
  std::optional<scheduler::Request> Make(const scheduler::Decision& decision);

  scheduler::JobId jobs;
  scheduler::Ledger ledger;
  scheduler::Units base = 0;
  scheduler::Units peak = 0;
  scheduler::Units piece = 0;
  std::vector<scheduler::Request> waiting;
  uint64_t next_ticket = 1;
  scheduler::ReleaseId next_release = 1;
};

/// Of the states' own making: ends the program.
void Must(const Status& status);

}  // namespace sluice::bench
