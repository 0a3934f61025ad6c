// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "common/unique_fd.h"
#include "intercept/protocol/pages.h"
#include "noderuntime/session/frames.h"

namespace sluice::testing {

/// The client's end of a connection, driven line by line by a test.
class ScriptedClient {
 public:
  explicit ScriptedClient(UniqueFd socket) : socket_(std::move(socket)) {}

  static ScriptedClient Connect(const std::string& path) {
    UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0)
        << path;
    return ScriptedClient(std::move(socket));
  }

  void SendBytes(const void* bytes, size_t size) const {
    EXPECT_EQ(::send(socket_.get(), bytes, size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
  }
  template <typename Frame>
  void Send(Frame frame, protocol::FrameType type, uint32_t seq = 0,
            size_t size = sizeof(Frame)) const {
    frame.header = session::MakeHeader(type, size, seq);
    SendBytes(&frame, size);
  }
  void Hello(const std::array<uint8_t, 16>& uuid) const {
    Send(MakeHello(uuid), protocol::FrameType::kHello);
  }
  static protocol::Hello MakeHello(const std::array<uint8_t, 16>& uuid) {
    protocol::Hello hello = {};
    hello.major = protocol::kMajor;
    hello.client_page_bytes = sizeof(protocol::ClientPage);
    hello.daemon_page_bytes = sizeof(protocol::DaemonPage);
    hello.mark_page_bytes = sizeof(protocol::MarkPage);
    std::memcpy(hello.device_uuid, uuid.data(), uuid.size());
    return hello;
  }
  void Ready() const { Send(protocol::Ready{}, protocol::FrameType::kReady); }
  void Lease(uint32_t units, uint32_t seq, uint32_t contiguous = 1) const {
    protocol::Lease lease = {};
    lease.units = units;
    lease.contiguous = contiguous;
    Send(lease, protocol::FrameType::kLease, seq);
  }
  /// Without terms: already done.
  void Release(const std::vector<protocol::Extent>& extents,
               const std::vector<protocol::FenceTerm>& fence = {}) const {
    protocol::Release release = {};
    release.terms = static_cast<uint32_t>(fence.size());
    release.extents = static_cast<uint32_t>(extents.size());
    for (size_t i = 0; i < fence.size(); ++i) release.fence[i] = fence[i];
    for (size_t i = 0; i < extents.size(); ++i) release.extent[i] = extents[i];
    Send(release, protocol::FrameType::kRelease, 0,
         offsetof(protocol::Release, extent) + extents.size() * sizeof(protocol::Extent));
  }

  struct Received {
    std::vector<std::byte> bytes;
    std::vector<UniqueFd> fds;
    protocol::FrameType type() const {
      protocol::Header header;
      std::memcpy(&header, bytes.data(), sizeof header);
      return static_cast<protocol::FrameType>(header.type);
    }
    template <typename Frame>
    Frame As() const {
      Frame frame = {};
      std::memcpy(static_cast<void*>(&frame), bytes.data(), std::min(sizeof frame, bytes.size()));
      return frame;
    }
  };
  /// nullopt: nothing is there (or the end, see closed()).
  std::optional<Received> Receive() {
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * protocol::kMaxFdsPerFrame)];
    Received received;
    received.bytes.resize(protocol::kMaxFrameBytes);
    iovec data = {received.bytes.data(), received.bytes.size()};
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t count = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count <= 0) {
      closed_ = count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
      return std::nullopt;
    }
    received.bytes.resize(static_cast<size_t>(count));
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, part)) {
      const size_t fds = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < fds; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
        received.fds.emplace_back(fd);
      }
    }
    return received;
  }
  bool closed() const { return closed_; }
  void HangUp() { socket_.reset(); }
  int fd() const { return socket_.get(); }

 private:
  UniqueFd socket_;
  bool closed_ = false;
};

}  // namespace sluice::testing
