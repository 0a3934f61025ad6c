// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "common/unique_fd.h"

namespace sluice::bench {

/// A child that answers a datagram of a Lease's size with one of a Grant's, and swallows Releases.
class EchoProcess {
 public:
  static std::unique_ptr<EchoProcess> Start(std::string* error);
  EchoProcess(const EchoProcess&) = delete;
  EchoProcess& operator=(const EchoProcess&) = delete;
  ~EchoProcess();

  bool Ask();
  bool GiveBack();
  /// What of a question is spent deciding: nothing.
  std::optional<double> OwnNs() const { return std::nullopt; }
  const std::string& error() const { return error_; }

 private:
  EchoProcess(UniqueFd socket, pid_t child) : socket_(std::move(socket)), child_(child) {}

  UniqueFd socket_;
  pid_t child_;
  std::string error_;
};

}  // namespace sluice::bench
