// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What a container might say to a grant's socket without the library: each on a connection of its
// own, and what was answered, one line "NAME=close: TEXT" or "NAME=end" per attempt.
//
//   intruder SOCKET                what the library never says
//   intruder SOCKET session UUID N a session as the library has it, whose limit is N units: it asks
//                                  for more, and opens another one beside it and from a child
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "intercept/protocol/pages.h"
#include "intercept/protocol/wire.h"

namespace {

namespace wire = sluice::protocol;

using Datagram = std::vector<char>;

template <typename Frame>
Datagram Bytes(wire::FrameType type, Frame frame) {
  frame.header = {wire::kMagic, static_cast<uint16_t>(type), 0, sizeof frame, 1};
  const auto* first = reinterpret_cast<const char*>(&frame);
  return Datagram(first, first + sizeof frame);
}

/// The type of the next frame, a Deny's code or a Close's text with it; "silence" or "end" where
/// none comes. Counts the descriptors beside it.
struct Heard {
  wire::FrameType type = {};
  std::string text;
  size_t descriptors = 0;
  uint16_t flags = 0;
};
Heard Hear(int fd) {
  Heard heard;
  pollfd readable = {fd, POLLIN, 0};
  if (::poll(&readable, 1, 5000) <= 0) {
    heard.text = "silence";
    return heard;
  }
  alignas(8) char buffer[wire::kMaxFrameBytes];
  alignas(cmsghdr) char beside[CMSG_SPACE(wire::kMaxFdsPerFrame * sizeof(int))];
  iovec part = {buffer, sizeof buffer};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = beside;
  message.msg_controllen = sizeof beside;
  const ssize_t got = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  wire::Header header = {};
  if (got < static_cast<ssize_t>(sizeof header)) {
    heard.text = "end";
    return heard;
  }
  std::memcpy(&header, buffer, sizeof header);
  heard.type = static_cast<wire::FrameType>(header.type);
  heard.flags = header.flags;
  const cmsghdr* control = CMSG_FIRSTHDR(&message);
  if (control != nullptr && control->cmsg_type == SCM_RIGHTS) {
    heard.descriptors = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  }
  const auto text = [&](auto frame) {
    std::memcpy(&frame, buffer, std::min(static_cast<size_t>(got), sizeof frame));
    frame.text[sizeof frame.text - 1] = '\0';
    return std::string(frame.text);
  };
  if (heard.type == wire::FrameType::kClose) heard.text = "close: " + text(wire::Close());
  if (heard.type == wire::FrameType::kDeny) heard.text = "deny: " + text(wire::Deny());
  return heard;
}

std::string Answer(int fd) {
  std::string said;
  for (;;) {
    const Heard heard = Hear(fd);
    if (!heard.text.empty()) return said + heard.text;
    said += "frame " + std::to_string(static_cast<int>(heard.type)) + ", ";
  }
}

/// -1: not let in.
int Connect(const char* socket_path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket_path, sizeof address.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  ::close(fd);
  return -1;
}

void Try(const char* socket_path, const char* name, const std::vector<Datagram>& datagrams) {
  const int fd = Connect(socket_path);
  if (fd < 0) {
    std::printf("%s=not let in\n", name);
    return;
  }
  for (const Datagram& datagram : datagrams) {
    if (::send(fd, datagram.data(), datagram.size(), MSG_NOSIGNAL) < 0) break;
  }
  std::printf("%s=%s\n", name, Answer(fd).c_str());
  std::fflush(stdout);
  ::close(fd);
}

wire::Hello AnyHello() {
  wire::Hello hello = {};
  hello.major = wire::kMajor;
  hello.minor = wire::kMinor;
  return hello;
}

/// "GPU-01234567-...".
wire::Hello HelloOf(const char* uuid) {
  wire::Hello hello = AnyHello();
  hello.client_page_bytes = sizeof(wire::ClientPage);
  hello.daemon_page_bytes = sizeof(wire::DaemonPage);
  hello.mark_page_bytes = sizeof(wire::MarkPage);
  size_t digits = 0;
  for (const char* c = uuid + std::strlen("GPU-"); *c != '\0' && digits < 32; ++c) {
    if (*c == '-') continue;
    const char digit[2] = {*c, '\0'};
    const auto half = static_cast<uint8_t>(std::strtoul(digit, nullptr, 16));
    uint8_t& byte = hello.device_uuid[digits++ / 2];
    byte = static_cast<uint8_t>(byte << 4 | half);
  }
  return hello;
}

void Say(int fd, const Datagram& datagram) {
  (void)!::send(fd, datagram.data(), datagram.size(), MSG_NOSIGNAL);
}

/// What is answered to a request for so many units: "grant", or why not.
std::string Ask(int fd, uint32_t units) {
  wire::Lease lease = {};
  lease.units = units;
  lease.contiguous = 1;
  Say(fd, Bytes(wire::FrameType::kLease, lease));
  for (;;) {
    const Heard heard = Hear(fd);
    if (heard.type == wire::FrameType::kGrant && (heard.flags & wire::kLastFrame) != 0)
      return "grant";
    if (!heard.text.empty()) return heard.text;
  }
}

/// Without a single call of the driver: nothing is mapped, so nothing can be used, but it counts.
int Session(const char* socket_path, const char* uuid, uint32_t limit) {
  const Datagram hello = Bytes(wire::FrameType::kHello, HelloOf(uuid));
  const int fd = Connect(socket_path);
  Say(fd, hello);
  size_t handles = 0;
  for (Heard heard = Hear(fd);; heard = Hear(fd)) {
    if (!heard.text.empty()) {
      std::printf("opened=%s\n", heard.text.c_str());
      break;
    }
    if (heard.type != wire::FrameType::kHandles) continue;
    handles += heard.descriptors;
    if ((heard.flags & wire::kLastFrame) == 0) continue;
    std::printf("opened=yes\n");
    break;
  }
  std::printf("handles=%zu\n", handles);
  if (handles == 0) return 0;
  Say(fd, Bytes(wire::FrameType::kReady, wire::Ready()));
  std::printf("above_limit=%s\n", Ask(fd, limit + 1).c_str());
  std::printf("limit=%s\n", Ask(fd, limit).c_str());
  std::printf("one_more=%s\n", Ask(fd, 1).c_str());
  Try(socket_path, "second_connection", {hello});
  const pid_t child = ::fork();
  if (child == 0) {
    // On a connection of its own, and on its parent's.
    Try(socket_path, "child_connection", {hello});
    Say(fd, Bytes(wire::FrameType::kLease, wire::Lease()));
    std::_Exit(0);
  }
  ::waitpid(child, nullptr, 0);
  std::printf("child_on_parents=%s\n", Answer(fd).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5 && std::strcmp(argv[2], "session") == 0) {
    return Session(argv[1], argv[3], static_cast<uint32_t>(std::strtoul(argv[4], nullptr, 10)));
  }
  if (argc != 2) {
    std::fprintf(stderr, "usage: intruder SOCKET [session UUID UNITS]\n");
    return 2;
  }
  using wire::FrameType;
  wire::SetLimit limit = {};
  limit.job = 1;
  limit.bytes = uint64_t{1} << 40;
  wire::Register job = {};
  job.limit_bytes = uint64_t{1} << 40;
  wire::SetPolicy policy = {};
  std::strcpy(policy.policy, "spatial");
  wire::Drain drain = {};
  drain.on = 1;
  wire::SetBudget budget = {};
  budget.bytes = 1;
  wire::Lease lease = {};
  lease.units = 0xffffffff;
  Try(argv[1], "garbage", {Datagram(100, 'x')});
  Try(argv[1], "empty_header", {Datagram(16, '\0')});
  Try(argv[1], "set_limit", {Bytes(FrameType::kSetLimit, limit)});
  Try(argv[1], "register", {Bytes(FrameType::kRegister, job)});
  Try(argv[1], "set_policy", {Bytes(FrameType::kSetPolicy, policy)});
  Try(argv[1], "drain", {Bytes(FrameType::kDrain, drain)});
  Try(argv[1], "set_budget", {Bytes(FrameType::kSetBudget, budget)});
  Try(argv[1], "status", {Bytes(FrameType::kStatus, wire::Status{})});
  Try(argv[1], "lease_without_session", {Bytes(FrameType::kLease, lease)});
  Try(argv[1], "hello_of_no_gpu", {Bytes(FrameType::kHello, AnyHello())});
  return 0;
}
