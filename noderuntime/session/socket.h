// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"

namespace sluice::session {

/// Listens on a seqpacket socket at `path`, which must not exist. The folder's mode (0700) is what
/// keeps others out; it is right before the socket is there.
Result<UniqueFd> ListenAt(const std::string& path);

/// Takes connections off a listening socket, also where no descriptor is left for one: the caller
/// is hung up on then. Left in the queue it would wake an event loop without end.
class Acceptor {
 public:
  Acceptor();
  /// Not valid: nobody was there, or he was hung up on.
  UniqueFd Accept(int listener);

 private:
  UniqueFd spare_;
};

/// The process at the other end. `pidfd` becomes readable when it has ended; it is taken from the
/// socket where the kernel can, so that a reused process id cannot be confused with it.
struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
  UniqueFd pidfd;
};
Result<Peer> PeerOf(int socket);

/// One seqpacket connection, never blocking. Frames that the kernel does not take wait in a bounded
/// queue: a client that does not read loses its session, and nothing else.
class Connection {
 public:
  static constexpr size_t kMaxQueued = 256;

  explicit Connection(UniqueFd socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }

  enum class Read { kFrame, kNothing, kEnd };
  /// The next datagram; `frame` points into an internal buffer until the next call. Descriptors
  /// that came along are closed: nobody sends any to the daemon. One that is too long is cut to a
  /// length that ParseFrame refuses.
  Read Receive(std::span<const std::byte>* frame);
  /// From now on frames come with who sent them, as the kernel knows it.
  Status AskForSenders();
  /// Of the frame before; 0: not known.
  pid_t sender() const { return sender_; }

  /// Sends or queues. `fds` stay open elsewhere until the frame is gone (the pool's handles do).
  /// That the peer has hung up is no error: the frame goes nowhere, and what the peer said before
  /// is still to be received, with its end; peer_gone() then.
  Status Send(std::span<const std::byte> frame, std::span<const int> fds = {});
  template <typename T>
  Status SendFrame(const T& frame, std::span<const int> fds = {}) {
    return Send(std::as_bytes(std::span<const T, 1>(&frame, 1)), fds);
  }
  /// Sends a frame whose descriptors are closed right after the call, so that it cannot wait in the
  /// queue: by the time it was sent, their numbers might be somebody else's. An error: the client
  /// has not read what it was sent before.
  Status SendNow(std::span<const std::byte> frame, std::span<const int> fds);
  /// Takes up the queue again, after EPOLLOUT or some time.
  Status Flush();
  bool has_queued() const { return !queue_.empty(); }
  bool peer_gone() const { return peer_gone_; }
  /// EPOLLOUT tells when to flush. Not so while too many descriptors are in flight: the socket is
  /// writable all the time, and only time helps.
  bool wants_write() const { return !queue_.empty() && !out_of_references_; }

 private:
  struct Queued {
    std::vector<std::byte> bytes;
    std::vector<int> fds;
  };
  enum class Sent { kYes, kToNobody, kLater, kBroken };
  Sent TrySend(std::span<const std::byte> frame, std::span<const int> fds);

  UniqueFd socket_;
  bool names_senders_ = false;
  pid_t sender_ = 0;
  std::deque<Queued> queue_;
  bool out_of_references_ = false;
  bool peer_gone_ = false;  // as far as Send has noticed
};

}  // namespace sluice::session
