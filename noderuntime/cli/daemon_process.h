// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "noderuntime/cli/child.h"
#include "noderuntime/cli/daemon_client.h"
#include "noderuntime/cli/layout.h"

namespace sluice::cli {

struct DaemonOptions {
  std::string program;  // path of sluice-noded
  std::string runtime_dir;
  std::vector<std::string> flags;  // beyond --runtime-dir and --ready-fd
  std::string log_file;            // receives its standard output and error
  int ready_timeout_ms = 60'000;   // a real driver takes seconds to start
};

/// A sluice-noded that belongs to this process.
class DaemonProcess {
 public:
  /// Returns once it listens. On failure the error carries the last line of its log.
  static Result<DaemonProcess> Start(const DaemonOptions& options, const Environment& environment);

  pid_t pid() const { return child_.pid(); }
  /// Empty while it runs.
  std::optional<ExitStatus> Ended() { return child_.Wait(0); }
  /// Asks it to end and waits, so that its event log is complete. An error when it does not end
  /// well.
  Status Stop();

 private:
  explicit DaemonProcess(Child child) : child_(std::move(child)) {}
  Child child_;
};

/// Connects to the daemon of `runtime_dir`; when none answers, starts one that outlives this
/// process and ends 5 s after its last job. `flags` go to that daemon.
Result<DaemonClient> ConnectOrStart(const Layout& layout, const std::string& runtime_dir,
                                    const std::vector<std::string>& flags,
                                    const Environment& environment);

/// The environment of a daemon started from `environment`: it must not become a job itself.
Environment DaemonEnvironment(Environment environment, const Layout& layout);

/// The last line of a text file that is not empty; "" when there is none.
std::string LastLine(const std::string& path);

}  // namespace sluice::cli
