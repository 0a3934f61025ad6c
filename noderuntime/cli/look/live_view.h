// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "common/status.h"

namespace sluice::cli {

/// A job as a daemon's live answer tells of it. Amounts in bytes.
struct LiveJob {
  uint32_t id = 0;
  std::string name;
  std::string phase;
  uint64_t held = 0;
  uint64_t live = 0;
  uint64_t claim = 0;
  uint64_t limit = 0;
  uint64_t lent = 0;
  uint64_t borrowed = 0;
  uint64_t gate = 0;   // the last one it passed
  uint64_t gates = 0;  // 0: it has no profile
  uint64_t iteration = 0;
  uint64_t waits_ms = 0;
  std::string waits_for;  // a sentence; empty: it does not wait
  std::string code;       // the same in one word
};

/// What each job held at most in a step.
struct LiveStep {
  uint64_t t_ms = 0;                   // since 1970
  std::map<uint32_t, uint64_t> bytes;  // by job
};

/// What a daemon answers to who looks ten times a second, and what it answered before.
class LiveView {
 public:
  static constexpr uint64_t kKeptMs = 60'000;

  /// Takes another answer. kUnavailable: it is none; nothing has changed.
  Status Take(const std::string& json);

  /// To be asked for next.
  uint64_t cursor() const { return cursor_; }
  uint64_t now_ms() const { return now_ms_; }
  uint64_t pool() const { return pool_; }
  uint64_t budget() const { return budget_; }
  uint64_t free() const { return free_; }
  const std::string& policy() const { return policy_; }
  uint64_t lanes() const { return lanes_; }
  const std::vector<LiveJob>& jobs() const { return jobs_; }
  /// Of the last minute, oldest first; the first may be older, and say what was held until then.
  const std::deque<LiveStep>& steps() const { return steps_; }

 private:
  uint64_t cursor_ = 0;
  uint64_t now_ms_ = 0;
  uint64_t pool_ = 0;
  uint64_t budget_ = 0;
  uint64_t free_ = 0;
  std::string policy_;
  uint64_t lanes_ = 0;
  std::vector<LiveJob> jobs_;
  std::deque<LiveStep> steps_;
};

}  // namespace sluice::cli
