// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Jobs that begin together stay in step, and in step like kernels meet like kernels: nothing is
// gained. Where memory is tight it keeps them apart by itself; where it is not, this does.
#include "scheduler/policy/policies.h"

namespace sluice::scheduler {

bool InPhase(const Asked& asked) {
  if (asked.config.phase <= 0 || asked.request.kind != RequestKind::kGate0) return true;
  const Course* last = nullptr;
  for (const Job& other : asked.ledger.jobs()) {
    if (other.id == asked.request.job || !other.under_way()) continue;
    const Course* course = asked.outlook.Of(other.id);
    if (course == nullptr || !course->open()) continue;  // nobody knows how far it is
    if (last == nullptr || course->opened_ns() > last->opened_ns()) last = course;
  }
  return last == nullptr || last->done() >= asked.config.phase;
}

}  // namespace sluice::scheduler
