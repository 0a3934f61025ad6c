// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/policy/patience.h"

#include <algorithm>

namespace sluice::scheduler {
namespace {

std::string Seconds(uint64_t ns) { return std::to_string(ns / 1'000'000'000) + " s"; }

}  // namespace

GiveUp Judge(const Measured& job, const Patience& patience) {
  if (!job.blocked && job.waited_ns >= patience.arrival_ns && job.silent_ns >= patience.silent_ns) {
    return GiveUp::kSilent;
  }
  if (!job.published.has_value() && job.launches >= patience.launches) return GiveUp::kAimless;
  if (job.published.has_value() &&
      job.published->launches > std::max(patience.launches, uint64_t{8} * job.published->period)) {
    return GiveUp::kLost;
  }
  return job.waited_ns >= patience.measure_ns ? GiveUp::kSlow : GiveUp::kNot;
}

std::string Why(GiveUp reason, const Patience& patience) {
  switch (reason) {
    case GiveUp::kNot:
      return "";
    case GiveUp::kSilent:
      return "nothing was heard of it for " + Seconds(patience.silent_ns);
    case GiveUp::kSlow:
      return "it did not repeat itself within " + Seconds(patience.measure_ns);
    case GiveUp::kAimless:
      return "it did not repeat itself in " + std::to_string(patience.launches) + " launches";
    case GiveUp::kLost:
      return "it did not come back to the cycle that was found";
  }
  return "";
}

std::string HowLong(const Patience& patience) {
  return "until it repeats itself, at most " + Seconds(patience.silent_ns) +
         " without a sign of life and " + Seconds(patience.measure_ns) + " in all";
}

}  // namespace sluice::scheduler
