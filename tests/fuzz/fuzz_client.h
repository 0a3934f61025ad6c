// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/unique_fd.h"
#include "intercept/protocol/pages.h"
#include "noderuntime/session/frames.h"

namespace sluice::fuzz {

/// What a frame from the daemon says, as far as a client has to know it.
struct Answer {
  protocol::FrameType type = protocol::FrameType::kClose;
  uint32_t seq = 0;
  bool last = false;
  std::vector<protocol::Extent> extents;  // of a Grant
  std::string path;                       // of a Registered
  uint32_t session = 0;                   // of a Welcome
};

/// A client's end of a connection: sends whatever it is told to and has the session's pages mapped.
class FuzzClient {
 public:
  /// Not connected (valid() is false) when nobody listens.
  explicit FuzzClient(const std::string& path);
  FuzzClient(FuzzClient&& other) noexcept;
  FuzzClient& operator=(FuzzClient&& other) noexcept;
  ~FuzzClient();

  bool valid() const { return socket_.valid(); }
  bool closed() const { return closed_; }
  /// False: the socket takes nothing more.
  bool Send(std::span<const uint8_t> bytes) const;
  template <typename Frame>
  bool SendFrame(Frame frame, protocol::FrameType type, uint32_t seq = 0,
                 size_t bytes = sizeof(Frame)) const {
    frame.header = session::MakeHeader(type, bytes, seq);
    return Send({reinterpret_cast<const uint8_t*>(&frame), bytes});
  }
  void SendHello(const std::array<uint8_t, 16>& device) const;
  bool SendRelease(const std::vector<protocol::Extent>& extents,
                   const std::vector<protocol::FenceTerm>& fence) const;

  /// The next frame that is there; nullopt: none, or closed().
  std::optional<Answer> Receive();

  /// nullptr until a Welcome was received. The first two may be written, as a client may.
  protocol::MarkPage* mark() const { return mark_; }
  protocol::ClientPage* page() const { return page_; }
  const protocol::DaemonPage* daemon() const { return daemon_; }
  uint32_t profile() const;

  /// One turn of a training: blocks on the way up and down, each with a launch.
  void Iterate(uint32_t layers, uint64_t block);
  void Push(protocol::OpKind kind, uint64_t value, uint32_t detail = 0);

 private:
  void MapPages(std::span<const UniqueFd> fds);
  void Unmap();

  UniqueFd socket_;
  bool closed_ = false;
  protocol::MarkPage* mark_ = nullptr;
  protocol::ClientPage* page_ = nullptr;
  const protocol::DaemonPage* daemon_ = nullptr;
  uint64_t cached_tail_ = 0;
  uint32_t launches_ = 0;
};

}  // namespace sluice::fuzz
