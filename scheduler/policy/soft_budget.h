// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "scheduler/policy/policies.h"

/// A soft budget (Config::soft_budget): iterations begin, and go past their gates, as if the pool
/// were no larger. Where memory is tight jobs fall into a phase in which they suit each other, and
/// in which phase they do is not monotone in the pool (docs/design/policies.md).
///
/// Soft: it is a policy's, so it promises nobody anything, takes nothing from anybody and refuses
/// no memory that a job asks for in its iteration. Where nothing moves any more, and for whoever is
/// alone, it does not count.
namespace sluice::scheduler {

/// What the jobs may be expected to share: the budget and what lies beyond the operator's
/// (kBeyondBudget), which counts as held; at most the pool.
Units CountedOn(const Ledger& ledger, const Config& config);

/// Whether the request of a job at a gate (kGate0, kGate) leaves I3 true, in numbers, in the
/// budget.
bool FitsSoftBudget(const Asked& asked);

}  // namespace sluice::scheduler
