// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/unique_fd.h"
#include "intercept/protocol/wire.h"

namespace sluice::testing {

/// A hostile client: sends any bytes to one of the daemon's sockets.
class RawClient {
 public:
  /// Throws std::runtime_error when nobody listens.
  explicit RawClient(const std::string& socket_path);

  /// False when the daemon has closed the connection.
  bool Send(const void* bytes, size_t size) const;
  bool Send(const std::vector<uint8_t>& bytes) const { return Send(bytes.data(), bytes.size()); }
  /// Sends descriptors along, which no client of the protocol does.
  bool SendWithFd(const std::vector<uint8_t>& bytes, int fd) const;

  struct Answer {
    std::vector<uint8_t> bytes;  // empty: the connection was closed
    std::vector<UniqueFd> fds;
    protocol::FrameType type() const;
    std::string text() const;  // of a Close, Deny or Notice
  };
  /// Empty: nothing came in time.
  std::optional<Answer> Receive(int timeout_ms) const;
  /// Reads until the daemon closes the connection; its reason, if it gave one.
  std::optional<std::string> AwaitClose(int timeout_ms) const;

 private:
  UniqueFd socket_;
};

/// A frame of the given type with its header filled in, `body` behind it.
std::vector<uint8_t> FrameBytes(protocol::FrameType type, const std::vector<uint8_t>& body);
/// The Hello that the interception library of this build sends. `gpu_uuid` as in `sluice status`.
std::vector<uint8_t> HelloBytes(const std::string& gpu_uuid);

}  // namespace sluice::testing
