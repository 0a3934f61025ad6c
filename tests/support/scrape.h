// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "common/unique_fd.h"

namespace sluice::testing {

/// A connection to this port of `host`; invalid: nobody listens there.
inline UniqueFd Dial(int port, uint32_t host = INADDR_LOOPBACK) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(host);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return {};
  return fd;
}

/// GET /metrics, to its end, with the answer's head; empty: none came.
inline std::string Scrape(int port, uint32_t host = INADDR_LOOPBACK) {
  const UniqueFd fd = Dial(port, host);
  if (!fd.valid()) return "";
  const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
  if (::write(fd.get(), request.data(), request.size()) < 0) return "";
  std::string text;
  char part[4096];
  for (ssize_t got = 0; (got = ::read(fd.get(), part, sizeof part)) > 0;) {
    text.append(part, static_cast<size_t>(got));
  }
  return text;
}

}  // namespace sluice::testing
