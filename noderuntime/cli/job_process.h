// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "noderuntime/cli/child.h"

namespace sluice::cli {

/// Cuts a byte stream into lines.
class LineBuffer {
 public:
  /// Appends the lines completed by `bytes` to `lines`.
  void Feed(std::string_view bytes, std::vector<std::string>& lines);
  /// The rest without a newline, at the end of the stream.
  void Finish(std::vector<std::string>& lines);

 private:
  std::string rest_;
};

/// A program whose two output streams are collected line by line while it runs.
class JobProcess {
 public:
  /// `label` names the job in messages.
  static Result<JobProcess> Start(std::string label, SpawnOptions options);

  const std::string& label() const { return label_; }
  const std::vector<std::string>& out() const { return out_; }
  const std::vector<std::string>& err() const { return err_; }
  bool ended() const { return status_.has_value(); }
  const ExitStatus& status() const { return *status_; }
  pid_t pid() const { return child_.pid(); }
  void Signal(int number) const { child_.Signal(number); }

 private:
  friend class JobGroup;
  JobProcess(std::string label, Child child, UniqueFd out, UniqueFd err);
  /// Takes what has arrived. A stream that has ended is closed.
  void Drain();

  std::string label_;
  Child child_;
  UniqueFd out_fd_;
  UniqueFd err_fd_;
  LineBuffer out_lines_;
  LineBuffer err_lines_;
  std::vector<std::string> out_;
  std::vector<std::string> err_;
  std::optional<ExitStatus> status_;
};

/// Runs jobs side by side in one thread.
class JobGroup {
 public:
  void Add(JobProcess job) { jobs_.push_back(std::move(job)); }
  std::vector<JobProcess>& jobs() { return jobs_; }

  /// What to do while they run; called after every batch of output and every exit, and 20 times a
  /// second in between.
  using Observer = std::function<void(JobGroup&)>;
  /// Until every job has ended. When `cancel_fd` (-1: none) becomes readable all jobs are killed
  /// and the result is kUnavailable; so it is after `timeout_ms` (kFailedPrecondition).
  Status Run(const Observer& observer, int cancel_fd, int timeout_ms);
  void KillAll();

 private:
  std::vector<JobProcess> jobs_;
};

}  // namespace sluice::cli
