// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/hostile_client.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>

#include "intercept/protocol/page_access.h"

namespace sluice::bench {

std::unique_ptr<HostileClient> HostileClient::Start(const Job& job,
                                                    const std::array<uint8_t, 16>& gpu,
                                                    std::string* error) {
  std::unique_ptr<HostileClient> client(new HostileClient);
  client->socket_ = UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const bool fits = job.socket.size() < sizeof(address.sun_path);
  if (fits) ::memcpy(address.sun_path, job.socket.c_str(), job.socket.size() + 1);
  if (!fits || ::connect(client->socket_.get(), reinterpret_cast<sockaddr*>(&address),
                         sizeof(address)) != 0) {
    *error = "cannot connect to " + job.socket;
    return nullptr;
  }
  if (!client->Handshake(gpu)) {
    *error = "the daemon refuses the session";
    return nullptr;
  }
  return client;
}

HostileClient::~HostileClient() {
  if (page_ != nullptr) ::munmap(page_, sizeof *page_);
  if (daemon_ != nullptr) ::munmap(daemon_, sizeof *daemon_);
}

bool HostileClient::Handshake(const std::array<uint8_t, 16>& gpu) {
  protocol::Hello hello{};
  hello.major = protocol::kMajor;
  hello.minor = protocol::kMinor;
  hello.client_page_bytes = sizeof(protocol::ClientPage);
  hello.daemon_page_bytes = sizeof(protocol::DaemonPage);
  std::copy(gpu.begin(), gpu.end(), hello.device_uuid);
  hello.mark_page_bytes = sizeof(protocol::MarkPage);
  if (!Send(hello, protocol::FrameType::kHello, sizeof hello) || !Receive(0)) return false;
  // Marks, its own page, the daemon's, liveness.
  if (type() != protocol::FrameType::kWelcome || fds_.size() != 4) return false;
  const auto map = [this](size_t fd, size_t bytes, int protection) {
    void* at = ::mmap(nullptr, bytes, protection, MAP_SHARED, fds_[fd].get(), 0);
    return at == MAP_FAILED ? nullptr : at;
  };
  page_ = static_cast<protocol::ClientPage*>(
      map(1, sizeof(protocol::ClientPage), PROT_READ | PROT_WRITE));
  daemon_ = static_cast<protocol::DaemonPage*>(map(2, sizeof(protocol::DaemonPage), PROT_READ));
  if (page_ == nullptr || daemon_ == nullptr) return false;
  for (;;) {
    if (!Receive(0)) return false;
    const auto* header = reinterpret_cast<const protocol::Header*>(frame_);
    if (type() == protocol::FrameType::kHandles && (header->flags & protocol::kLastFrame)) break;
  }
  fds_.resize(4);
  protocol::Ready ready{};
  return Send(ready, protocol::FrameType::kReady, sizeof ready);
}

bool HostileClient::Scatter(uint32_t pieces) {
  protocol::Lease lease{};
  lease.units = 2 * pieces;
  lease.contiguous = 1;
  lease.header.seq = ++seq_;
  if (!Send(lease, protocol::FrameType::kLease, sizeof lease) || !AwaitGrant()) return false;
  std::vector<protocol::Extent> every_second;
  for (const protocol::Extent& extent : granted_) {
    for (uint32_t at = 1; at < extent.length; at += 2)
      every_second.push_back({extent.offset + at, 1});
  }
  granted_.clear();
  return GiveBack(every_second, 0);
}

void HostileClient::KeepAsking() {
  if (!granted_.empty() && GiveBack(granted_, MSG_DONTWAIT)) granted_.clear();
  if (!asked_ && granted_.empty()) {
    protocol::Lease lease{};
    lease.units = lease.contiguous = 1;
    lease.header.seq = ++seq_;
    asked_ = Send(lease, protocol::FrameType::kLease, sizeof lease, MSG_DONTWAIT);
  }
  if (!asked_ || !Receive(MSG_DONTWAIT)) return;
  if (type() == protocol::FrameType::kGrant) {
    const auto& grant = *reinterpret_cast<const protocol::Grant*>(frame_);
    granted_.insert(granted_.end(), grant.extent, grant.extent + grant.extents);
  }
  if (type() == protocol::FrameType::kGrant || type() == protocol::FrameType::kDeny) asked_ = false;
}

void HostileClient::SendFrame() {
  protocol::Count count{};
  count.family = static_cast<uint32_t>(protocol::Family::kHostPinned);
  (void)Send(count, protocol::FrameType::kCount, sizeof count, MSG_DONTWAIT);
}

void HostileClient::FillRing() {
  while (page_->head.load() - daemon_->tail.load() < protocol::kRingRecords) {
    protocol::PushRecord(*page_, *daemon_, cached_tail_,
                         {static_cast<uint8_t>(protocol::OpKind::kLaunch), 0, 0,
                          static_cast<uint32_t>(pushed_), pushed_ * 2654435761u});
    ++pushed_;
  }
}

template <typename T>
bool HostileClient::Send(T& frame, protocol::FrameType type, size_t bytes, int flags) {
  frame.header.magic = protocol::kMagic;
  frame.header.type = static_cast<uint16_t>(type);
  frame.header.bytes = static_cast<uint32_t>(bytes);
  return ::send(socket_.get(), &frame, bytes, MSG_NOSIGNAL | flags) == static_cast<ssize_t>(bytes);
}

bool HostileClient::Receive(int flags) {
  iovec data = {frame_, sizeof frame_};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * protocol::kMaxFdsPerFrame)];
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t bytes = ::recvmsg(socket_.get(), &message, flags | MSG_CMSG_CLOEXEC);
  if (bytes < static_cast<ssize_t>(sizeof(protocol::Header))) return false;
  const cmsghdr* part = CMSG_FIRSTHDR(&message);
  if (part == nullptr || part->cmsg_type != SCM_RIGHTS) return true;
  for (size_t i = 0; i < (part->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
    int fd = -1;
    ::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
    fds_.emplace_back(fd);
  }
  return true;
}

/// A grant of many extents comes in several frames.
bool HostileClient::AwaitGrant() {
  for (;;) {
    if (!Receive(0) || type() == protocol::FrameType::kDeny) return false;
    if (type() != protocol::FrameType::kGrant) continue;
    const auto& grant = *reinterpret_cast<const protocol::Grant*>(frame_);
    granted_.insert(granted_.end(), grant.extent, grant.extent + grant.extents);
    if ((grant.header.flags & protocol::kLastFrame) != 0) return true;
  }
}

bool HostileClient::GiveBack(const std::vector<protocol::Extent>& extents, int flags) {
  for (size_t first = 0; first < extents.size(); first += protocol::kMaxExtentsPerFrame) {
    protocol::Release release{};
    release.extents = static_cast<uint32_t>(
        std::min(extents.size() - first, size_t{protocol::kMaxExtentsPerFrame}));
    std::copy_n(extents.begin() + static_cast<ptrdiff_t>(first), release.extents, release.extent);
    const size_t bytes =
        offsetof(protocol::Release, extent) + release.extents * sizeof(protocol::Extent);
    if (!Send(release, protocol::FrameType::kRelease, bytes, flags)) return false;
  }
  return true;
}

}  // namespace sluice::bench
