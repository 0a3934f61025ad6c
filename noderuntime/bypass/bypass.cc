// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/bypass/bypass.h"

#include <utility>

namespace sluice::bypass {

std::vector<pid_t> Bypass::Look(const std::vector<pid_t>& on_gpu, const std::set<pid_t>& known) {
  std::vector<pid_t> found;
  // A number that was not there is somebody else's when it comes again.
  std::map<pid_t, Verdict> before = std::exchange(verdicts_, {});
  const bool first = !std::exchange(looked_, true);
  for (const pid_t pid : on_gpu) {
    if (known.contains(pid) || verdicts_.contains(pid)) continue;
    const auto seen = before.find(pid);
    Verdict verdict = first ? Verdict::kNotJudged : Verdict::kSuspect;
    if (seen != before.end()) {
      verdict = seen->second == Verdict::kSuspect ? Verdict::kFound : seen->second;
      if (seen->second == Verdict::kSuspect) found.push_back(pid);
    }
    verdicts_[pid] = verdict;
  }
  return found;
}

}  // namespace sluice::bypass
