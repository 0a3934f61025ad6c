// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace sluice::bypass {

/// Finds processes that use a GPU past Sluice, from looks at the list of those that are on it. A
/// process that has the library says so when it makes a context, so whoever was in two looks in a
/// row and said nothing has none in front of its driver. Who was there at the first look is not
/// judged: it may have said so to a daemon before this one. Pure; for one thread.
class Bypass {
 public:
  /// `on_gpu`: the list now; `known`: who has said so, or is the daemon's own. Returns those found
  /// out by this look, each once as long as it stays.
  std::vector<pid_t> Look(const std::vector<pid_t>& on_gpu, const std::set<pid_t>& known);

  /// Not to be judged any more: it was found to be no job at all.
  void Forgive(pid_t pid) { verdicts_[pid] = Verdict::kNotJudged; }

 private:
  enum class Verdict : uint8_t { kNotJudged, kSuspect, kFound };

  bool looked_ = false;
  std::map<pid_t, Verdict> verdicts_;  // of those that were there at the last look
};

}  // namespace sluice::bypass
