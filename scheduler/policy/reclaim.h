// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <optional>

#include "scheduler/ledger/ledger.h"
#include "scheduler/policy/policy.h"

namespace sluice::scheduler {

/// The next spare units that may become free. A freed unit raises its job's remaining claim by one
/// and has to be of use to it; where it is not (a hole that no promised run reaches) it stays with
/// the job, which may be granted it again. Of runs that may become free by themselves as many are
/// freed at once as may be.
/// nullopt: there are none; or, where `left` is true then, none among those that were tried. That
/// is never so without a cursor (SpareCursor): then each run is tried.
std::optional<Decision> Reclaim(const Ledger& ledger, SpareCursor* cursor, bool* left);

}  // namespace sluice::scheduler
