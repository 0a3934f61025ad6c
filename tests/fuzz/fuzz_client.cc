// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/fuzz/fuzz_client.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "intercept/protocol/page_access.h"

namespace sluice::fuzz {
namespace {

template <typename T>
void Map(int fd, int protection, T** page) {
  void* at = ::mmap(nullptr, sizeof(T), protection, MAP_SHARED, fd, 0);
  *page = at == MAP_FAILED ? nullptr : static_cast<T*>(at);
}

template <typename T>
void UnmapPage(T** page) {
  if (*page != nullptr) ::munmap(const_cast<std::remove_const_t<T>*>(*page), sizeof(T));
  *page = nullptr;
}

}  // namespace

FuzzClient::FuzzClient(const std::string& path)
    : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    socket_.reset();
  }
}

FuzzClient::FuzzClient(FuzzClient&& other) noexcept { *this = std::move(other); }

FuzzClient& FuzzClient::operator=(FuzzClient&& other) noexcept {
  if (this == &other) return *this;
  Unmap();
  socket_ = std::move(other.socket_);
  closed_ = other.closed_;
  mark_ = std::exchange(other.mark_, nullptr);
  page_ = std::exchange(other.page_, nullptr);
  daemon_ = std::exchange(other.daemon_, nullptr);
  cached_tail_ = other.cached_tail_;
  launches_ = other.launches_;
  return *this;
}

FuzzClient::~FuzzClient() { Unmap(); }

void FuzzClient::Unmap() {
  UnmapPage(&mark_);
  UnmapPage(&page_);
  UnmapPage(&daemon_);
}

bool FuzzClient::Send(std::span<const uint8_t> bytes) const {
  return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

void FuzzClient::SendHello(const std::array<uint8_t, 16>& device) const {
  protocol::Hello hello = {};
  hello.major = protocol::kMajor;
  hello.minor = protocol::kMinor;
  hello.client_page_bytes = sizeof(protocol::ClientPage);
  hello.daemon_page_bytes = sizeof(protocol::DaemonPage);
  hello.mark_page_bytes = sizeof(protocol::MarkPage);
  std::memcpy(hello.device_uuid, device.data(), device.size());
  SendFrame(hello, protocol::FrameType::kHello);
}

bool FuzzClient::SendRelease(const std::vector<protocol::Extent>& extents,
                             const std::vector<protocol::FenceTerm>& fence) const {
  protocol::Release release = {};
  release.terms = static_cast<uint32_t>(std::min(fence.size(), protocol::kMaxFenceTerms));
  release.extents = static_cast<uint32_t>(std::min(extents.size(), protocol::kMaxExtentsPerFrame));
  std::copy_n(fence.begin(), release.terms, release.fence);
  std::copy_n(extents.begin(), release.extents, release.extent);
  return SendFrame(
      release, protocol::FrameType::kRelease, 0,
      offsetof(protocol::Release, extent) + release.extents * sizeof(protocol::Extent));
}

void FuzzClient::MapPages(std::span<const UniqueFd> fds) {
  if (mark_ != nullptr || fds.size() != 4) return;
  Map(fds[0].get(), PROT_READ | PROT_WRITE, &mark_);
  Map(fds[1].get(), PROT_READ | PROT_WRITE, &page_);
  Map(fds[2].get(), PROT_READ, &daemon_);
}

std::optional<Answer> FuzzClient::Receive() {
  alignas(8) std::byte bytes[protocol::kMaxFrameBytes];
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * protocol::kMaxFdsPerFrame)];
  iovec data = {bytes, sizeof bytes};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t count = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (count <= 0) {
    closed_ = closed_ || count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
    return std::nullopt;
  }
  std::vector<UniqueFd> fds;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    const size_t came = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < came; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      fds.emplace_back(fd);
    }
  }
  protocol::Header header = {};
  std::memcpy(&header, bytes, sizeof header);
  Answer answer;
  answer.type = static_cast<protocol::FrameType>(header.type);
  answer.seq = header.seq;
  answer.last = (header.flags & protocol::kLastFrame) != 0;
  if (answer.type == protocol::FrameType::kWelcome) MapPages(fds);
  if (answer.type == protocol::FrameType::kWelcome) {
    protocol::Welcome welcome = {};
    std::memcpy(static_cast<void*>(&welcome), bytes, sizeof welcome);
    answer.session = welcome.session;
  }
  if (answer.type == protocol::FrameType::kGrant) {
    protocol::Grant grant = {};
    std::memcpy(static_cast<void*>(&grant), bytes, static_cast<size_t>(count));
    answer.extents.assign(grant.extent, grant.extent + grant.extents);
  }
  if (answer.type == protocol::FrameType::kRegistered) {
    protocol::Registered registered = {};
    std::memcpy(static_cast<void*>(&registered), bytes, sizeof registered);
    if (registered.status == 0) answer.path = registered.path;
  }
  return answer;
}

uint32_t FuzzClient::profile() const {
  static protocol::ProfileImage image;
  if (daemon_ == nullptr || !protocol::ReadProfile(*daemon_, &image)) return 0;
  return image.profile_id;
}

void FuzzClient::Push(protocol::OpKind kind, uint64_t value, uint32_t detail) {
  if (page_ == nullptr || daemon_ == nullptr) return;
  protocol::PushRecord(*page_, *daemon_, cached_tail_,
                       {static_cast<uint8_t>(kind), 0, 0, detail, value});
}

void FuzzClient::Iterate(uint32_t layers, uint64_t block) {
  for (uint32_t i = 0; i < 2 * layers; ++i) {
    const bool up = i < layers;
    if (up) Push(protocol::OpKind::kAlloc, block);
    Push(protocol::OpKind::kLaunch, 100 + i, launches_);
    Push(protocol::OpKind::kLaunchTime, 50'000, launches_++);
    if (!up) Push(protocol::OpKind::kFree, block);
  }
}

}  // namespace sluice::fuzz
