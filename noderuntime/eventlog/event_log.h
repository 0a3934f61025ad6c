// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "scheduler/record/record.h"

namespace sluice::eventlog {

/// Writes records as JSON lines. Records are collected, and become text when the caller flushes,
/// once per turn of its loop: a reader sees whole turns, and nobody's grant waits for text or a
/// system call.
class EventLog {
 public:
  /// Starts an empty file: a log describes one run of the daemon.
  static Result<EventLog> Create(const std::string& path);

  void Write(const scheduler::Record& record);
  /// An error is reported once; the log ends there, the daemon goes on.
  Status Flush();

 private:
  explicit EventLog(UniqueFd file) : file_(std::move(file)) {}

  UniqueFd file_;
  std::vector<scheduler::Record> pending_;
};

}  // namespace sluice::eventlog
