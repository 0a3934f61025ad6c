// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include "intercept/base/line.h"
#include "intercept/base/lock.h"
#include "intercept/base/paged_array.h"
#include "intercept/lookup/driver_table.h"
#include "intercept/protocol/page_access.h"
#include "intercept/session/arena_map.h"
#include "intercept/session/client_settings.h"
#include "intercept/session/frame_socket.h"
#include "intercept/session/silence.h"

namespace sluice {

/// The daemon's answer to a request.
struct Answer {
  enum Kind { kGranted, kDenied, kLost, kQuiesce };
  Kind kind;
  protocol::DenyCode code;             // kDenied
  char text[protocol::kMaxTextBytes];  // kDenied: who holds what; kLost: what is wrong
};

/// One conversation with the daemon: the socket, the three shared pages and the mapped pool. The
/// handshake is all or nothing. Not thread-safe by itself: one thread opens, requests or closes at
/// a time (the client's request lock); Send and the pages may be used by all.
class Session {
 public:
  constexpr Session() = default;

  /// Connects and maps everything; the context of `device` is current. On failure nothing is left
  /// and `why` says what is wrong. `scratch` is for a parting that has to be said again.
  bool Open(const DriverTable& driver, const char* path, CUdevice device, protocol::Resume* scratch,
            Line& why);
  /// Says goodbye, unmaps everything. False: the daemon is gone and does not hear it. `clean`: all
  /// units are released, and no work is left that could touch them. `left`: what stays charged, by
  /// family.
  bool Close(const DriverTable& driver, bool clean, const uint64_t* left);
  /// The context in which the marks were registered is gone; another one is current, which has all
  /// the rest of the session, too. False: no mark can be queued any more.
  bool RegisterMarksAnew(const DriverTable& driver);
  /// The pool is not mapped any more; its addresses are reserved until Close.
  void UnmapArena(const DriverTable& driver) { arena_.UnmapHandles(driver); }
  /// In a forked child: the parent's conversation is none of ours. The liveness pipe stays open, as
  /// its end says that somebody may still hold the memory.
  void ForgetInChild();

  /// The GPU's, by which the daemon knows it. False: the driver does not tell.
  static bool IdentityOf(const DriverTable& driver, CUdevice device, uint8_t (&uuid)[16]);

  /// Who waits for a daemon that has given no sign of life for so long says so on stderr, once, and
  /// waits on; and once that it is back. Of a daemon that shows none (wire.h) nothing is said.
  void SaySilentAfter(uint64_t ms) { silence_ms_ = ms; }

  uint32_t NextSeq() { return ++seq_; }
  /// Waits for a daemon that lives, or may live, and has no room.
  const char* Send(const protocol::Header* header);
  bool TrySend(const protocol::Header* header) { return socket_.TrySend(header); }
  /// Waits for the answer to request `seq`; prints notices meanwhile. kQuiesce is none: it is
  /// answered with Quiet, and then waited for again. On kGranted the extents are
  /// in the pending set until TakePending.
  void Await(uint32_t seq, Answer* answer);
  /// Whether Await has something to read, now or within this time.
  bool Hears(uint64_t timeout_ms) { return socket_.Hears(timeout_ms); }
  /// f(extent) for each run of granted units; false when f was false for one.
  template <class F>
  bool TakePending(F f) {
    bool all = true;
    for (uint32_t unit = 0; unit < units_; ++unit) {
      if (pending_[unit] == 0) continue;
      protocol::Extent extent{unit, 0};
      for (; unit < units_ && pending_[unit] != 0; ++unit, ++extent.length) pending_[unit] = 0;
      all = f(extent) && all;
    }
    return all;
  }
  /// The job's end of the pool, by the last grant.
  bool high_end() const { return high_end_; }
  /// The daemon is given up; nobody sends or waits any more.
  void Abandon() { socket_.Shutdown(); }

  // session_resume.cc: the daemon died, and one that is started anew takes the session back
  /// The daemon hung up without a word: another one may come in its place.
  bool may_return() const {
    return socket_.hung_up() && !dismissed_ && daemon_minor_ >= protocol::kResumeMinor &&
           !given_up_.load(std::memory_order_acquire);
  }
  /// Abandon() for good: the process ends. Any thread may call it.
  void GiveUp();
  /// Whether the daemon that hung up said why, and nobody has read it: refusal(). Before Reconnect,
  /// which forgets it.
  bool SentAway();
  /// A new connection in the place of the old one. It waits in the queue of the job's socket until
  /// a daemon is there.
  const char* Reconnect(const char* path);
  /// Fills in what every frame of a declaration says.
  void BeginDeclaration(uint32_t rejected, protocol::Resume* frame) const;
  /// Sends the part with its first `count` entries, and begins the next one.
  const char* SendPart(protocol::Resume* frame, bool last);
  /// The declaration was sent on this connection and is not answered yet.
  bool declared() const { return declared_; }
  enum class Return { kBack, kNotYet, kGoneAgain, kRefused };
  Return AwaitResumed(uint64_t timeout_ms);
  const char* refusal() const { return refusal_; }
  /// A daemon has said something to somebody who had to wait for it. `said`: that it was gone.
  void SayBack(bool said);

  // A session whose goodbye no daemon has heard: the next one takes it for absent, and lets nobody
  // of this process begin anew.
  /// After a clean Close: tells the next daemon, whenever it comes, that nothing is left. Does not
  /// wait.
  void Part(const char* path, protocol::Resume* scratch);
  /// It was told, and has not answered.
  bool parting() const { return units_ == 0 && socket_.open(); }
  /// Gives back of what the last session left on the account, on a connection of its own. Does not
  /// wait; false: it could not be said.
  bool GiveBack(const char* path, uint32_t family, uint64_t bytes);
  /// Waits for the answer. False: there is no daemon yet.
  bool AwaitParted(const char* path, protocol::Resume* scratch, uint64_t timeout_ms);

  // There from the first session on: of the current one, or of the last.
  protocol::MarkPage& marks() const { return *marks_; }
  protocol::ClientPage& client_page() const { return *client_; }
  const protocol::DaemonPage& daemon_page() const { return *daemon_; }
  CUdeviceptr MarkAddress(uint32_t slot) const { return mark_address_ + 8u * slot; }

  const ArenaMap& arena() const { return arena_; }
  ArenaMap& arena() { return arena_; }
  CUdevice device() const { return device_; }
  uint64_t unit_bytes() const { return unit_bytes_; }
  uint32_t units() const { return units_; }
  uint64_t pool_bytes() const { return arena_.pool_bytes(); }
  /// Units that windows have room for. 0: nothing is stitched.
  uint32_t windows() const { return arena_.windows(); }
  /// What can be mapped a second time by itself: a driver maps handles from their start only.
  uint64_t handle_bytes() const { return handle_bytes_; }
  /// What the daemon knows of the protocol (wire.h).
  uint32_t daemon_minor() const { return daemon_minor_; }
  /// Somebody gave the job a limit: it covers memory outside the pool, too.
  bool limit_given() const { return limit_bytes_ != 0; }
  /// The most that this job may ever hold, as far as it is known: else the pool.
  uint64_t LimitBytes() const;

 private:
  const char* Attempt(const DriverTable& driver, const char* path);
  const char* Handshake(const DriverTable& driver);
  const char* SayHello(const DriverTable& driver);
  const char* ReceiveInOrder(protocol::FrameType type, Frame* frame, FrameFds* fds);
  const char* TakeWelcome(const Frame& frame, FrameFds& fds);
  uint32_t Windows(const DriverTable& driver) const;
  const char* MapPool(const DriverTable& driver);
  const char* RegisterMarks(const DriverTable& driver, bool same);
  bool AddGrant(const protocol::Grant& grant, uint64_t epoch);
  void Drop(const DriverTable& driver);
  bool ShowsBeats() const;
  uint64_t LookMs() const { return silence_ms_ / 6 + 1; }
  void LookForBeats();
  bool TakeDaemonPage(int fd);
  static bool LargeEnough(int fd, size_t bytes);
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t WholePages(size_t bytes) {
    return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  }
  template <class Page>
  static bool MapShared(int fd, int protection, Page** page);

  FrameSocket socket_;
  Lock silence_lock_;  // over silence_: one thread may wait for an answer and others for room
  Silence silence_;
  uint64_t silence_ms_ = ClientSettings().silence_ms;
  ArenaMap arena_;
  protocol::MarkPage* marks_ = nullptr;
  protocol::ClientPage* client_ = nullptr;
  const protocol::DaemonPage* daemon_ = nullptr;
  CUdeviceptr mark_address_ = 0;
  bool marks_registered_ = false;
  CUdevice device_ = 0;
  int mark_fd_ = 0;
  int liveness_fd_ = 0;
  uint64_t unit_bytes_ = 0;
  uint64_t handle_bytes_ = 0;
  uint32_t handle_count_ = 0;
  uint32_t units_ = 0;
  uint64_t limit_bytes_ = 0;
  uint32_t session_id_ = 0;
  uint16_t daemon_minor_ = 0;
  bool dismissed_ = false;  // the daemon ended the session, or it broke the rules
  bool declared_ = false;
  bool ended_ = false;  // an earlier session of this process, cleanly
  uint32_t ended_id_ = 0;
  uint64_t ended_epoch_ = 0;
  uint64_t left_[protocol::kMaxOutsideFamilies] = {};  // charged when it ended, and not given back
  std::atomic<bool> given_up_{false};
  uint32_t seq_ = 0;
  uint64_t epoch_ = 0;
  bool high_end_ = false;
  PagedArray<uint8_t> pending_;  // 1: granted by the answer that is being received
  char refusal_[protocol::kMaxTextBytes] = {};
};

}  // namespace sluice
