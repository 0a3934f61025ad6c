// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "common/unique_fd.h"

namespace sluice::bench {

/// A daemon that can do one thing: whoever asks it for its status gets what `status` says at that
/// moment (true: with events), by the protocol of sluice-noded. One connection at a time, in a
/// thread of its own.
class StatusDaemon {
 public:
  /// Listens in `folder`, as sluice-noded does in its --runtime-dir. Throws std::runtime_error:
  /// it cannot.
  StatusDaemon(const std::string& folder, std::function<std::string(bool)> status);
  ~StatusDaemon();
  StatusDaemon(const StatusDaemon&) = delete;
  StatusDaemon& operator=(const StatusDaemon&) = delete;

 private:
  void Serve() const;
  void Answer(int connection) const;

  const std::function<std::string(bool)> status_;
  UniqueFd listener_;
  std::thread thread_;
};

}  // namespace sluice::bench
