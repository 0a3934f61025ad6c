// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/status.h"

namespace sluice::page {

/// A connection to the daemon of one GPU, for as long as somebody looks. For one thread.
class LiveConnection {
 public:
  virtual ~LiveConnection() = default;
  /// What the daemon's `kLive` says (JSON): how things stand, and what was held since `cursor`; 0:
  /// all that it keeps. An error: the connection is of no use any more.
  virtual Result<std::string> Fetch(uint64_t cursor) = 0;
};

/// The daemons that the page shows. For several threads.
class Source {
 public:
  virtual ~Source() = default;
  /// Numbers of the GPUs, ascending; empty: nothing runs.
  virtual std::vector<uint32_t> Gpus() const = 0;
  /// kNotFound: there is no such GPU; kUnavailable: its daemon does not answer.
  virtual Result<std::unique_ptr<LiveConnection>> Connect(uint32_t gpu) const = 0;
  /// The daemon's status as JSON, what happened lately left out; errors as Connect. Several at
  /// once.
  virtual Result<std::string> Status(uint32_t gpu) const = 0;
  /// As cli::DaemonClient::SetPolicy; returns the lanes that hold now.
  virtual Result<uint32_t> SetPolicy(uint32_t gpu, const std::string& policy,
                                     uint32_t lanes) const = 0;
};

}  // namespace sluice::page
