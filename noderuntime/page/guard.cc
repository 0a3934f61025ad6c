// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/page/guard.h"

#include <algorithm>

namespace sluice::page {
namespace {

bool IsPort(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
         std::stoul(std::string(text)) <= 65535;
}

/// The part before the port, if any, which may be missing and is checked.
std::string_view WithoutPort(std::string_view host) {
  const size_t colon = host.rfind(':');
  const size_t bracket = host.rfind(']');
  if (colon == std::string_view::npos || (bracket != std::string_view::npos && colon < bracket)) {
    return host;
  }
  return IsPort(host.substr(colon + 1)) ? host.substr(0, colon) : std::string_view();
}

}  // namespace

Result<Listen> ParseListen(const std::string& text) {
  const size_t colon = text.rfind(':');
  const std::string host = text.substr(0, colon);
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  const bool loopback = host == "127.0.0.1" || host == "localhost" || host == "[::1]";
  if (!loopback || !IsPort(port)) {
    return Status(StatusCode::kInvalidArgument,
                  "'" + text +
                      "': allowed: 127.0.0.1:PORT or [::1]:PORT with a port up to 65535 (the page "
                      "is for this machine; forward the port to look from elsewhere), or off");
  }
  return Listen{host == "[::1]" ? "::1" : "127.0.0.1", static_cast<uint16_t>(std::stoul(port))};
}

std::string Authority(const Listen& listen) {
  const std::string host = listen.host == "::1" ? "[::1]" : listen.host;
  return host + ":" + std::to_string(listen.port);
}

bool IsLocalHost(std::string_view host) {
  const std::string_view name = WithoutPort(host);
  return name == "localhost" || name == "127.0.0.1" || name == "[::1]";
}

bool SameToken(std::string_view expected, std::string_view given) {
  if (expected.empty() || expected.size() != given.size()) return false;
  unsigned char differs = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    differs = static_cast<unsigned char>(differs | (expected[i] ^ given[i]));
  }
  return differs == 0;
}

}  // namespace sluice::page
