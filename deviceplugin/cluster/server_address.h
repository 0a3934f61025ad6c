// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <string_view>

#include "common/status.h"

namespace sluice::deviceplugin {

/// One word of a request: of characters that are seen, so that it ends neither itself nor its line.
bool IsWord(std::string_view text);

/// What a URL says of a server. A value.
struct ServerAddress {
  bool tls = true;
  std::string host;  // a name, or a number of IPv4 or IPv6 (without brackets)
  std::string port;
  std::string base;  // what every path begins with; empty, or /A/B

  /// Of http[s]://HOST[:PORT][/BASE]; IPv6 in brackets. kInvalidArgument: it is none.
  static Result<ServerAddress> Parse(const std::string& url);

  /// As in a URL and in the header `Host`: HOST:PORT, or [HOST]:PORT.
  std::string Authority() const;
};

}  // namespace sluice::deviceplugin
