// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/bed.h"
#include "common/unique_fd.h"
#include "intercept/protocol/pages.h"
#include "intercept/protocol/wire.h"

namespace sluice::bench {

/// A session that does nothing but keep the daemon busy, and never sleeps over it. One step at a
/// time, so that what it does can change.
class HostileClient {
 public:
  /// nullptr and `error`: it gets no session. For one process: the one that calls this.
  static std::unique_ptr<HostileClient> Start(const Job& job, const std::array<uint8_t, 16>& gpu,
                                              std::string* error);
  ~HostileClient();

  /// Holds `pieces` single units with as many of its own between them, given back and of no use.
  bool Scatter(uint32_t pieces);

  /// Asks for a unit and gives it back as soon as there is an answer.
  void KeepAsking();
  /// A frame that changes nothing.
  void SendFrame();
  /// Operation records, as many as the ring takes.
  void FillRing();

 private:
  HostileClient() = default;
  bool Handshake(const std::array<uint8_t, 16>& gpu);
  template <typename T>
  bool Send(T& frame, protocol::FrameType type, size_t bytes, int flags = 0);
  /// The next frame into frame_, with the descriptors of a Welcome.
  bool Receive(int flags);
  bool AwaitGrant();
  bool GiveBack(const std::vector<protocol::Extent>& extents, int flags);
  protocol::FrameType type() const {
    return static_cast<protocol::FrameType>(
        reinterpret_cast<const protocol::Header*>(frame_)->type);
  }

  UniqueFd socket_;
  protocol::ClientPage* page_ = nullptr;
  protocol::DaemonPage* daemon_ = nullptr;
  uint64_t cached_tail_ = 0;
  uint64_t pushed_ = 0;
  uint32_t seq_ = 0;
  bool asked_ = false;
  std::vector<protocol::Extent> granted_;  // to be given back
  std::vector<UniqueFd> fds_;
  alignas(8) char frame_[protocol::kMaxFrameBytes];
};

}  // namespace sluice::bench
