// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/support/raw_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "intercept/protocol/pages.h"

namespace sluice::testing {

using protocol::FrameType;

RawClient::RawClient(const std::string& socket_path)
    : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("nobody listens on " + socket_path);
  }
}

bool RawClient::Send(const void* bytes, size_t size) const {
  return ::send(socket_.get(), bytes, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

bool RawClient::SendWithFd(const std::vector<uint8_t>& bytes, int fd) const {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  iovec part = {const_cast<uint8_t*>(bytes.data()), bytes.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* item = CMSG_FIRSTHDR(&message);
  item->cmsg_level = SOL_SOCKET;
  item->cmsg_type = SCM_RIGHTS;
  item->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(item), &fd, sizeof fd);
  return ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

FrameType RawClient::Answer::type() const {
  protocol::Header header = {};
  std::memcpy(&header, bytes.data(), std::min(bytes.size(), sizeof header));
  return static_cast<FrameType>(header.type);
}

std::string RawClient::Answer::text() const {
  const size_t offset =
      type() == FrameType::kDeny ? offsetof(protocol::Deny, text) : offsetof(protocol::Close, text);
  if (bytes.size() <= offset) return "";
  const auto* begin = reinterpret_cast<const char*>(bytes.data()) + offset;
  return std::string(begin, ::strnlen(begin, bytes.size() - offset));
}

std::optional<RawClient::Answer> RawClient::Receive(int timeout_ms) const {
  pollfd readable = {socket_.get(), POLLIN, 0};
  if (::poll(&readable, 1, timeout_ms) <= 0) return std::nullopt;
  Answer answer;
  answer.bytes.resize(protocol::kMaxFrameBytes);
  alignas(cmsghdr) char control[CMSG_SPACE(protocol::kMaxFdsPerFrame * sizeof(int))];
  iovec part = {answer.bytes.data(), answer.bytes.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t received = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
  answer.bytes.resize(received > 0 ? static_cast<size_t>(received) : 0);
  if (received <= 0) return answer;
  for (cmsghdr* item = CMSG_FIRSTHDR(&message); item != nullptr;
       item = CMSG_NXTHDR(&message, item)) {
    if (item->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::vector<int> fds(count);
    std::memcpy(fds.data(), CMSG_DATA(item), count * sizeof(int));
    for (const int fd : fds) answer.fds.emplace_back(fd);
  }
  return answer;
}

std::optional<std::string> RawClient::AwaitClose(int timeout_ms) const {
  std::string reason;
  for (;;) {
    const std::optional<Answer> answer = Receive(timeout_ms);
    if (!answer) return std::nullopt;
    if (answer->bytes.empty()) return reason;
    if (answer->type() == FrameType::kClose) reason = answer->text();
  }
}

std::vector<uint8_t> FrameBytes(FrameType type, const std::vector<uint8_t>& body) {
  protocol::Header header = {};
  header.magic = protocol::kMagic;
  header.type = static_cast<uint16_t>(type);
  header.bytes = static_cast<uint32_t>(sizeof header + body.size());
  header.seq = 1;
  std::vector<uint8_t> bytes(sizeof header + body.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  std::copy(body.begin(), body.end(), bytes.begin() + sizeof header);
  return bytes;
}

std::vector<uint8_t> HelloBytes(const std::string& gpu_uuid) {
  protocol::Hello hello = {};
  hello.major = protocol::kMajor;
  hello.minor = protocol::kMinor;
  hello.client_page_bytes = sizeof(protocol::ClientPage);
  hello.daemon_page_bytes = sizeof(protocol::DaemonPage);
  hello.mark_page_bytes = sizeof(protocol::MarkPage);
  std::string digits;
  for (const char c : gpu_uuid.substr(gpu_uuid.find('-') + 1)) {
    if (c != '-') digits += c;
  }
  for (size_t i = 0; i < sizeof hello.device_uuid && 2 * i + 1 < digits.size(); ++i) {
    hello.device_uuid[i] = static_cast<uint8_t>(std::stoul(digits.substr(2 * i, 2), nullptr, 16));
  }
  const auto* begin = reinterpret_cast<const uint8_t*>(&hello);
  return FrameBytes(FrameType::kHello, {begin + sizeof hello.header, begin + sizeof hello});
}

}  // namespace sluice::testing
