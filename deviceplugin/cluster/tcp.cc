// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/tcp.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>

namespace sluice::deviceplugin {
namespace {

// A watch may be silent for minutes; a server that is gone is known sooner than it would end.
constexpr int kAliveEveryS = 60;
constexpr int kUnansweredProbes = 3;

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Status Failed(int error_number) {
  return Status(StatusCode::kUnavailable, Status::FromErrno(error_number, "connect").message());
}

void Set(const UniqueFd& fd, int level, int option, int value) {
  // What the kernel does not know it does without.
  (void)::setsockopt(fd.get(), level, option, &value, sizeof value);
}

Result<UniqueFd> ConnectTo(const addrinfo& to, const Patience& patience) {
  UniqueFd fd(::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Failed(errno);
  Set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  Set(fd, IPPROTO_TCP, TCP_KEEPIDLE, kAliveEveryS);
  Set(fd, IPPROTO_TCP, TCP_KEEPINTVL, kAliveEveryS);
  Set(fd, IPPROTO_TCP, TCP_KEEPCNT, kUnansweredProbes);
  Set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  if (::connect(fd.get(), to.ai_addr, to.ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS) return Failed(errno);
  if (Status s = patience.Await(fd.get(), POLLOUT); !s.ok()) return s;
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return Failed(error);
  return fd;
}

}  // namespace

Result<UniqueFd> ConnectTcp(const ServerAddress& address, const Patience& patience) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int wrong = ::getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found);
  if (wrong != 0) {
    return Status(StatusCode::kUnavailable, address.host + ": " + ::gai_strerror(wrong));
  }
  const Addresses addresses(found, &::freeaddrinfo);
  int left = 0;
  for (const addrinfo* next = found; next != nullptr; next = next->ai_next) ++left;
  Status last(StatusCode::kUnavailable, address.host + " has no address");
  for (const addrinfo* next = found; next != nullptr; next = next->ai_next, --left) {
    // One that swallows what it is sent leaves time for the others.
    Result<UniqueFd> fd = ConnectTo(*next, patience.AtMost(patience.left() / left));
    if (fd.ok()) return fd;
    last = fd.status();
  }
  return last;
}

}  // namespace sluice::deviceplugin
