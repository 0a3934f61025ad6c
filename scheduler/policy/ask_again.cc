// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <limits>

#include "scheduler/policy/operations.h"
#include "scheduler/policy/policies.h"
#include "scheduler/policy/policy.h"

namespace sluice::scheduler {

double AskAgainIn(const Ledger& ledger, const std::vector<Request>& requests, const Config& config,
                  const Outlook& outlook, double within) {
  double least = std::numeric_limits<double>::infinity();
  const PolicyEntry* policy = FindPolicy(config.policy);
  if (policy == nullptr || policy->opens_in == nullptr) return least;
  Forecast forecast(ledger, outlook);
  for (const Request& request : requests) {
    if (AsksPastGate(request)) continue;
    const double in = policy->opens_in({ledger, requests, request, config, outlook, forecast},
                                       std::min(least, within));
    if (in > 0) least = std::min(least, in);
  }
  return least;
}

}  // namespace sluice::scheduler
