// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// One iteration at a time, as Gandiva (Xiao et al., OSDI 2018) and Salus (Yu and Chowdhury, MLSys
// 2020) share a GPU in time; what every other way of sharing is compared with.
#include "scheduler/policy/policies.h"

namespace sluice::scheduler {

bool TemporalMayOpen(const Asked& asked) { return Occupants(asked.ledger, asked.request.job) == 0; }

}  // namespace sluice::scheduler
