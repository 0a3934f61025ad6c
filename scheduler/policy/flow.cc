// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Memory flows as soon as it is safe (the flow from one job's groups to another's of Waterwave, Shi
// et al., 4.3, without its barrier): the claims and I3 are all there is.
#include "scheduler/policy/policies.h"

namespace sluice::scheduler {

bool FlowMayOpen(const Asked& asked) {
  return Occupants(asked.ledger, asked.request.job) < asked.config.lanes;
}

}  // namespace sluice::scheduler
