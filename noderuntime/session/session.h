// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "noderuntime/session/declaration.h"
#include "noderuntime/session/frames.h"
#include "noderuntime/session/share.h"
#include "noderuntime/session/shared_pages.h"
#include "noderuntime/session/socket.h"
#include "noderuntime/session/token_bucket.h"

namespace sluice::session {

/// What every session hands out: the pool's memory and its measures.
struct PoolAccess {
  uint64_t unit_bytes = 0;
  uint64_t handle_bytes = 0;
  std::vector<int> handles;  // in pool order; owned by the pool
  std::array<uint8_t, 16> device_uuid = {};
  bool logs_requests = false;  // each is a line of the event log, which leaves nothing out
};

/// What a session tells its owner, in order.
struct Opened {};  // a valid Hello; the owner answers with Accept or Close
struct Closed {
  std::string reason;
  bool by_peer = false;  // hung up or said Bye; nothing was wrong
  bool parted = false;   // it said Bye
};
/// A Declaration is answered with Resume or Close, an Ask with Tell.
using SessionEvent =
    std::variant<Opened, protocol::Ready, protocol::Lease, protocol::Gate, ReleaseFrame,
                 protocol::Mismatch, protocol::Charge, protocol::Uncharge, protocol::Count,
                 protocol::Quiet, protocol::Ask, Declaration, Closed>;

/// The daemon's end of one client connection: the handshake, then one frame at a time. It knows
/// what a client may say and when, not what it means. Whatever breaks the rules closes this session
/// with a reason; nothing else notices.
class Session {
 public:
  /// Bounds on what one client may cost. The protocol bounds most by itself (one request at a time,
  /// releases only of what is held); these bound the rest.
  static constexpr size_t kMaxFramesPerWakeup = 32;
  /// What is logged, where there is a log, of all sessions of a job: who sends more is read later,
  /// not closed. What a session that has begun may not take is for those that begin, and for who
  /// only asks.
  static constexpr uint64_t kLoggedPerSecond = 5'000;
  static constexpr uint64_t kLoggedBurst = 20'000;
  static constexpr uint64_t kLoggedReserve = 64;
  static constexpr uint64_t kHelloTimeoutNs = 10'000'000'000;
  static constexpr uint64_t kMappingTimeoutNs = 120'000'000'000;

  /// `share` and `logged` are its job's, and live as long as this reads.
  Session(uint32_t id, UniqueFd socket, Peer peer, const PoolAccess& pool, Share* share,
          TokenBucket* logged, uint64_t now_ns);

  uint32_t id() const { return id_; }
  pid_t pid() const { return peer_.pid; }
  const Peer& peer() const { return peer_; }
  int fd() const { return connection_.fd(); }
  bool closed() const { return state_ == State::kClosed; }
  bool ready() const { return state_ == State::kReady; }
  Connection& connection() { return connection_; }

  /// Reads up to kMaxFramesPerWakeup frames, one event each. The owner handles an event before it
  /// asks for the next; nullopt: nothing more for now.
  std::optional<SessionEvent> Next(uint64_t now_ns);
  /// Its job has sent so much that nothing is read of it for now. What somebody left who has hung
  /// up is read all the same: it is no more than a socket holds, and its end stands behind it.
  bool paused(uint64_t now_ns) const {
    if (hung_up_) return false;
    return share_->Spent(now_ns) ||
           (pool_.logs_requests && logged_->Left(now_ns) <= (ready() ? kLoggedReserve : 0));
  }
  /// The peer sends nothing more.
  void PeerHungUp() { hung_up_ = true; }
  /// To be called when the socket is readable, before Next.
  void StartWakeup() { frames_left_ = kMaxFramesPerWakeup; }

  /// Makes pages and liveness pipe, which are to be kept somewhere before the client has them.
  Status Prepare();
  /// Answers Hello: pages, liveness pipe and the pool's handles.
  Status Accept(uint64_t limit_bytes, uint64_t request_bytes);
  /// Answers a Declaration: `pages` and `liveness` are those of the session that goes on, which
  /// keeps its number.
  Status Resume(uint32_t number, SharedPages pages, UniqueFd liveness);
  /// Answers an Ask; the conversation is over then.
  Status Tell(const protocol::Told& figures);
  /// The number that Welcome told the client.
  uint32_t number() const { return number_; }
  uint16_t client_minor() const { return client_minor_; }
  const SharedPages& pages() const { return *pages_; }
  SharedPages& pages() { return *pages_; }
  SharedPages TakePages() { return std::move(*pages_); }
  bool has_pages() const { return pages_.has_value(); }
  /// Read end of the liveness pipe; hangs up when the process and all its forked children are gone.
  UniqueFd TakeLiveness() { return std::move(liveness_); }
  int liveness_fd() const { return liveness_.get(); }

  /// At the end: the process handle outlives the session.
  Peer TakePeer() { return std::move(peer_); }

  /// An answer to the outstanding request frees the client to ask again.
  void Answered() { request_outstanding_ = false; }
  bool request_outstanding() const { return request_outstanding_; }

  /// Says why (unless the peer is gone already) and ends the session. No event follows.
  void Close(const std::string& reason);

  /// The reason when a handshake takes too long.
  std::optional<std::string> Overdue(uint64_t now_ns) const;

 private:
  enum class State { kHello, kOpened, kMapping, kReady, kClosed };
  static constexpr size_t kMaxDeclaredExtents = 1u << 17;

  SessionEvent Fail(const std::string& reason);
  std::optional<SessionEvent> Handle(Frame frame, uint64_t now_ns);
  SessionEvent OtherMajor(uint16_t major);
  SessionEvent HandleHello(const protocol::Hello& hello);
  std::optional<SessionEvent> HandleResume(ResumeFrame frame);

  uint32_t id_;
  uint32_t number_;
  uint16_t client_minor_ = 0;
  std::optional<Declaration> declaration_;  // while its frames come in
  Connection connection_;
  Peer peer_;
  const PoolAccess& pool_;
  State state_ = State::kHello;
  uint64_t since_ns_;  // of the current state, for timeouts
  size_t frames_left_ = 0;
  bool hung_up_ = false;
  Share* share_;
  TokenBucket* logged_;
  bool request_outstanding_ = false;
  std::optional<SharedPages> pages_;
  UniqueFd liveness_;
  UniqueFd liveness_write_;  // until the client has it
};

}  // namespace sluice::session
