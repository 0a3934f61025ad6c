// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

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
  static constexpr int kStartTimeoutMs = 10'000;

  /// kNotFound: there is none in this folder.
  static Result<KeeperClient> Connect(const std::string& runtime_dir);
  /// Starts `program` for this folder, as nobody's child, and connects.
  static Result<KeeperClient> Start(const std::string& program, const std::string& runtime_dir,
                                    uint32_t linger_s);
  /// The same in two steps, between which nobody waits: what comes of the first one is readable, or
  /// hung up, when the second can be taken.
  static Result<UniqueFd> Launch(const std::string& program, const std::string& runtime_dir,
                                 uint32_t linger_s);
  /// kUnavailable: it has ended, or says nothing for `wait_ms`.
  static Result<KeeperClient> ConnectLaunched(const UniqueFd& launched, const std::string& program,
                                              const std::string& runtime_dir, int wait_ms);

  /// Readable or hung up: the keeper is gone (it never speaks first).
  int fd() const { return socket_.get(); }
  /// The keeper's number; 0: it is none here (another process namespace).
  pid_t pid() const;

  /// Under indices from key.index on. The descriptors stay the caller's.
  Status Store(Key key, std::span<const int> fds);
  Status Store(Kind kind, uint32_t id, int fd) { return Store(Key{kind, id, 0}, {&fd, 1}); }
  Status Drop(Kind kind, uint32_t id);
  Result<std::vector<Key>> List();
  Result<std::vector<UniqueFd>> Take(Kind kind, uint32_t id, uint32_t count);
  Result<UniqueFd> TakeOne(Kind kind, uint32_t id);
  Status Bye();
  /// The same to one that is given up: does not wait for it.
  void Dismiss() const;

 private:
  explicit KeeperClient(UniqueFd socket) : socket_(std::move(socket)) {}
  Status Ask(const Request& request, std::span<const int> send, Reply* reply,
             std::vector<UniqueFd>* came);

  UniqueFd socket_;
};

}  // namespace sluice::keeper
