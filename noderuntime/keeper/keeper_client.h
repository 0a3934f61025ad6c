// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "noderuntime/keeper/protocol.h"

namespace sluice::keeper {

/// The daemon's end of its keeper. Every call is a round trip to a process that answers at once;
/// one that does not for kTimeoutS is taken for dead.
class KeeperClient {
 public:
  static constexpr int kTimeoutS = 5;

  /// kNotFound: there is none in this folder.
  static Result<KeeperClient> Connect(const std::string& runtime_dir);
  /// Starts `program` for this folder, as nobody's child, and connects.
  static Result<KeeperClient> Start(const std::string& program, const std::string& runtime_dir,
                                    uint32_t linger_s);

  /// Readable or hung up: the keeper is gone (it never speaks first).
  int fd() const { return socket_.get(); }

  /// Under indices from key.index on. The descriptors stay the caller's.
  Status Store(Key key, std::span<const int> fds);
  Status Store(Kind kind, uint32_t id, int fd) { return Store(Key{kind, id, 0}, {&fd, 1}); }
  Status Drop(Kind kind, uint32_t id);
  Result<std::vector<Key>> List();
  Result<std::vector<UniqueFd>> Take(Kind kind, uint32_t id, uint32_t count);
  Result<UniqueFd> TakeOne(Kind kind, uint32_t id);
  Status Bye();

 private:
  explicit KeeperClient(UniqueFd socket) : socket_(std::move(socket)) {}
  Status Ask(const Request& request, std::span<const int> send, Reply* reply,
             std::vector<UniqueFd>* came);

  UniqueFd socket_;
};

}  // namespace sluice::keeper
