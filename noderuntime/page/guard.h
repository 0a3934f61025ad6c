// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/status.h"

namespace sluice::page {

/// Where the page is served.
struct Listen {
  std::string host;   // 127.0.0.1 or ::1
  uint16_t port = 0;  // 0: any that is free
};

/// From ADDRESS:PORT. kInvalidArgument: it is none, or no loopback address: what the page shows is
/// for who may be on this machine, and for who forwards the port.
Result<Listen> ParseListen(const std::string& text);

/// "127.0.0.1:80", "[::1]:80".
std::string Authority(const Listen& listen);

/// Whether a request with this Host header may be answered. A page of another name that was made to
/// resolve to this machine (DNS rebinding) would be of the same origin as ours; its requests carry
/// that name. Any port: it may have been forwarded.
bool IsLocalHost(std::string_view host);

/// Compares without telling by its duration how much of it is right. An empty token is no one's.
bool SameToken(std::string_view expected, std::string_view given);

}  // namespace sluice::page
