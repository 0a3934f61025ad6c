// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/unique_fd.h"
#include "scheduler/audit/audit.h"
#include "scheduler/record/record.h"

namespace sluice::testing {

/// The daemon's event log while it is being written.
class EventLog {
 public:
  explicit EventLog(std::string path);

  /// Every complete line so far. Throws std::runtime_error on one that cannot be read.
  const std::vector<scheduler::Record>& Read();

  /// Until `found` holds for what is in the log; woken by the file's changes. False: not in time.
  using Condition = std::function<bool(const std::vector<scheduler::Record>&)>;
  bool Await(const Condition& found, int timeout_ms);

  /// The job that was admitted under a name that begins with `name`, the last one if several were.
  std::optional<scheduler::JobId> FindJob(const std::string& name);
  /// How often `event` stands in the log for `job`.
  size_t Count(scheduler::EventKind event, scheduler::JobId job);
  /// Index of the first such record at or after `from`; empty: none yet.
  std::optional<size_t> Find(scheduler::EventKind event, scheduler::JobId job, size_t from = 0);

  scheduler::AuditReport Audit() { return scheduler::Audit(Read()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  UniqueFd watch_;
  uint64_t read_bytes_ = 0;
  std::vector<scheduler::Record> records_;
};

/// The units that `job` certainly holds before record `end`: granted, and not given back with a
/// fence that was reached. What has been fenced may be free or spare; the log tells later.
std::vector<bool> UnitsHeld(const std::vector<scheduler::Record>& records, scheduler::JobId job,
                            size_t end);

/// "I3 (record 17): text", one line per violation, for a failing test's message.
std::string Violations(const scheduler::AuditReport& report);

}  // namespace sluice::testing
