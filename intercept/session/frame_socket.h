// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "intercept/session/frame_check.h"

namespace sluice {

/// Not a cancellation point.
void CloseFd(int fd);

/// Descriptors that came with a frame. Whoever receives them closes them.
struct FrameFds {
  int fd[protocol::kMaxFdsPerFrame];
  size_t count;

  void CloseAll();
};

/// A seqpacket socket to the daemon. Sending is safe from several threads at once (a datagram is
/// atomic); receiving is for one. Errors are texts for the user; null means success. Uses raw
/// system calls, so that no thread is cancelled in the middle.
class FrameSocket {
 public:
  static constexpr uint64_t kForever = ~uint64_t{0};
  /// The error of a listener that is there, and whose queue is full.
  static const char kFull[];
  /// The error of a socket that is there, and of whose listener nothing is left.
  static const char kNobody[];
  /// What Receive says when the time is over.
  static const char kSilent[];
  /// What Send and SendNow say of a peer that is there and does not take the frame.
  static const char kNotTaken[];

  constexpr FrameSocket() = default;

  const char* Connect(const char* path);
  /// The same without waiting for room in the listener's queue, which nobody empties while there is
  /// no daemon.
  const char* ConnectNow(const char* path);
  /// Connects anew under the same descriptor: whoever uses it meanwhile talks to the old peer,
  /// which is gone, or to the new one. A failure leaves the old one. Does not wait for room,
  /// either.
  const char* Reconnect(const char* path);
  /// `header` is the first member of a frame of header->bytes bytes.
  const char* Send(const protocol::Header* header) { return SendWith(header, 0); }
  /// The same without waiting for room.
  const char* SendNow(const protocol::Header* header);
  /// The same without waiting: false when the peer does not take it now, or is gone, which the next
  /// Send or Receive will find.
  bool TrySend(const protocol::Header* header);
  /// Waits at most `timeout_ms`. On success the frame has passed CheckFrame.
  const char* Receive(Frame* frame, FrameFds* fds, uint64_t timeout_ms);
  /// Whether Receive would return at once, or does so within this time.
  bool Hears(uint64_t timeout_ms);
  /// Waits at most so long for room for a frame, or for the peer's end.
  void AwaitRoom(uint64_t timeout_ms);
  /// Ends the conversation, but keeps the descriptor: another thread may be about to use it.
  void Shutdown();
  void Close();

  bool open() const { return fd_ > 0; }
  /// The peer hung up, as far as Send and Receive have noticed: no frame came, and none will.
  bool hung_up() const { return hung_up_; }

 private:
  static const char* Open(const char* path, bool wait, int* fd);
  const char* SendWith(const protocol::Header* header, int flags);
  int64_t Poll(short events, uint64_t timeout_ms);  // NOLINT: as in pollfd

  std::atomic<bool> hung_up_{false};
  int fd_ = 0;  // 0: none (never a socket of ours: it is duplicated away from the standard files)
};

}  // namespace sluice
