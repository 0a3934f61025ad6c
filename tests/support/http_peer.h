// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "common/unique_fd.h"

namespace sluice::loopback {

/// A connection to this machine's `port`; not valid: nobody takes it. Whoever reads from it waits
/// for half a minute at most.
inline UniqueFd Dial(uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval patience = {30, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    fd.reset();
  }
  return fd;
}

/// All that `port` answers to `request`; what came until then, if it never ends.
inline std::string Ask(uint16_t port, const std::string& request) {
  const UniqueFd fd = Dial(port);
  if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return "";
  std::string answer;
  char buffer[65536];
  for (ssize_t count; (count = ::recv(fd.get(), buffer, sizeof buffer, 0)) > 0;) {
    answer.append(buffer, static_cast<size_t>(count));
  }
  return answer;
}

/// Connections whose request is never finished: some say nothing, the others only half of it.
inline std::vector<UniqueFd> HalfOpen(uint16_t port, int count) {
  std::vector<UniqueFd> fds;
  for (int i = 0; i < count; ++i) {
    fds.push_back(Dial(port));
    const std::string half = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n";
    if (i % 2 == 1) (void)::send(fds.back().get(), half.data(), half.size(), MSG_NOSIGNAL);
  }
  return fds;
}

}  // namespace sluice::loopback
