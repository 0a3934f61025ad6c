// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "intercept/protocol/page_access.h"
#include "intercept/protocol/wire.h"

namespace sluice::test {

/// The daemon's end of one session, on a thread of its own, as simple as it can be: grants the
/// lowest free units below the limit, takes releases back at once. Tests look at what came and can
/// answer by themselves.
class FakeDaemon {
 public:
  struct Options {
    uint64_t unit_bytes = 64 * 1024;
    uint32_t handles = 4;
    uint32_t units_per_handle = 8;
    uint32_t limit_units = 0;  // 0: the pool
    uint64_t limit_bytes = 0;  // as somebody gave it; 0: nobody did
    uint64_t outside_bytes = 1 << 20;
    uint16_t minor = protocol::kMinor;
    bool sealed = true;
    bool socket_is_kept = false;  // after HangUp a client finds the job's socket again
  };
  /// A client's frame as it came.
  using Bytes = std::vector<uint8_t>;

  FakeDaemon() : FakeDaemon(Options()) {}
  explicit FakeDaemon(const Options& options);
  ~FakeDaemon();

  const std::string& path() const { return path_; }
  uint32_t units() const { return options_.handles * options_.units_per_handle; }

  /// Called for each request instead of the default answer. Runs on the daemon's thread.
  std::function<void(const protocol::Header&)> on_request;
  /// Called for each Release, on the daemon's thread, before anything else is done with it.
  std::function<void(const protocol::Release&)> on_release;
  /// Called when a whole declaration has come, on the daemon's thread, before it is answered.
  std::function<void()> on_declared;
  /// Called once after Hello instead of the handshake.
  std::function<void()> on_hello;

  // Answers; `seq` is the request's.
  void Grant(uint32_t seq, const std::vector<protocol::Extent>& extents, uint32_t gate,
             bool last = true, uint64_t epoch = 0);
  void Deny(uint32_t seq, protocol::DenyCode code, const char* text);
  void Notice(const char* text);
  void Quiesce(uint32_t seq);
  void Close(const char* text);
  void SendRaw(const void* bytes, size_t count);
  /// The daemon dies. With socket_is_kept another one takes its place: it answers a whole
  /// declaration with a page of its own, and has the units that the declaration names.
  void HangUp();
  /// What it tells who asks for the job's figures. Its GPU is the fake driver's device 0.
  std::atomic<uint64_t> told_used{0};
  /// The default answer to a Lease, Gate or Charge.
  void AnswerAsUsual(const protocol::Header& request);

  /// Waits (bounded) until `count` frames of this type have come; returns them all.
  std::vector<Bytes> Wait(protocol::FrameType type, size_t count);
  size_t Count(protocol::FrameType type);

  protocol::MarkPage* marks = nullptr;
  protocol::ClientPage* client = nullptr;
  protocol::DaemonPage* daemon = nullptr;
  int mark_fd = -1;
  int client_fd = -1;
  /// Waits until the handshake is over (Ready has come).
  void WaitReady() { Wait(protocol::FrameType::kReady, 1); }
  /// True when every holder of the liveness pipe is gone.
  bool LivenessHungUp();
  uint64_t held_units();
  /// What is charged for a family, by the frames that came so far. Waits (bounded) for `expected`.
  uint64_t WaitCharged(protocol::Family family, uint64_t expected);
  /// What is counted for a family, the same way.
  uint64_t WaitCounted(protocol::Family family, uint64_t expected);
  uint64_t Counted(protocol::Family family);  // without waiting

 private:
  void Serve();
  void HandShake();
  void TakeDeclaration(const Bytes& frame);
  void* MakePage(const char* name, size_t bytes, int* fd);
  std::vector<protocol::Extent> TakeUnits(uint32_t count);
  void AnswerAsk();
  void AnswerCharge(const protocol::Charge& charge);
  uint64_t WaitFor(const std::map<uint32_t, uint64_t>& table, uint32_t family, uint64_t expected);

  Options options_;
  std::string folder_;
  std::string path_;
  int listener_ = -1;
  std::atomic<int> socket_{-1};
  int liveness_ = -1;
  int wake_[2] = {-1, -1};
  uint64_t epoch_ = 0;
  std::vector<int> page_fds_;
  std::vector<bool> held_;
  bool declaring_ = false;
  std::vector<Bytes> frames_;
  std::map<uint32_t, uint64_t> charged_;
  std::map<uint32_t, uint64_t> counted_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace sluice::test
