// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <vector>

#include "scheduler/policy/policy.h"

namespace sluice::scheduler {

/// Apply without the safety net: after an error the ledger may be half changed. For ledgers that
/// are thrown away then (a copy per trial is enough).
Status MakeOperations(const Decision& decision, const std::vector<Request>& requests,
                      Ledger* ledger);

}  // namespace sluice::scheduler
