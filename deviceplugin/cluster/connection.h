// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "common/status.h"
#include "common/unique_fd.h"
#include "deviceplugin/cluster/patience.h"
#include "deviceplugin/cluster/server_address.h"
#include "deviceplugin/cluster/tls.h"

namespace sluice::deviceplugin {

/// A connection to a server, with TLS over it where its address says so. Nothing here waits longer
/// than it is told to, or goes on when it is stopped. Every error is kUnavailable, and the
/// connection of no more use after it. Of one thread at a time.
class Connection {
 public:
  /// The handshake is done: the server is who it should be (ClientTls). `ca_file` counts only with
  /// TLS.
  static Result<Connection> Open(const ServerAddress& address, const std::string& ca_file,
                                 const Patience& patience);

  /// All of it.
  Status Write(std::string_view bytes, const Patience& patience);
  /// What is there, at least one byte. 0: the server has ended the connection, and with TLS said
  /// so; one that is cut off is an error then.
  Result<size_t> Read(std::span<char> into, const Patience& patience);

 private:
  Connection(UniqueFd fd, UniqueSsl ssl) : fd_(std::move(fd)), ssl_(std::move(ssl)) {}

  UniqueFd fd_;
  UniqueSsl ssl_;  // null without TLS
};

}  // namespace sluice::deviceplugin
