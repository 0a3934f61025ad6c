// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What a container might say to its grant's socket without the library: each on a connection of its
// own, and what was answered, one line "NAME=close: TEXT" or "NAME=end" per attempt.
//
//   intruder SOCKET
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

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

std::string Answer(int fd) {
  std::string said;
  for (;;) {
    pollfd readable = {fd, POLLIN, 0};
    if (::poll(&readable, 1, 5000) <= 0) return said + "silence";
    alignas(8) char buffer[wire::kMaxFrameBytes];
    const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
    if (got <= 0) return said + "end";
    wire::Header header;
    if (static_cast<size_t>(got) < sizeof header) return said + "half a frame";
    std::memcpy(&header, buffer, sizeof header);
    if (header.type != static_cast<uint16_t>(wire::FrameType::kClose)) {
      said += "frame " + std::to_string(header.type) + ", ";
      continue;
    }
    wire::Close close = {};
    std::memcpy(&close, buffer, std::min(static_cast<size_t>(got), sizeof close));
    close.text[sizeof close.text - 1] = '\0';
    return said + "close: " + close.text;
  }
}

void Try(const char* socket_path, const char* name, const std::vector<Datagram>& datagrams) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket_path, sizeof address.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
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

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: intruder SOCKET\n");
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
