// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/server_address.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace sluice::deviceplugin {
namespace {

constexpr std::string_view kPlain = "http://";
constexpr std::string_view kSecure = "https://";

bool IsPort(std::string_view text) {
  unsigned port = 0;
  const char* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, port);
  return error == std::errc() && read == end && port > 0 && port <= 65535;
}

/// Nothing that means something else in a URL.
bool IsHost(std::string_view text) {
  return IsWord(text) && text.find_first_of("/@?#[]") == std::string_view::npos;
}

}  // namespace

bool IsWord(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

Result<ServerAddress> ServerAddress::Parse(const std::string& url) {
  const Status bad(StatusCode::kInvalidArgument,
                   "'" + url + "' is no address of a server: https://HOST:PORT");
  ServerAddress address;
  address.tls = url.starts_with(kSecure);
  if (!address.tls && !url.starts_with(kPlain)) return bad;
  std::string_view rest = url;
  rest.remove_prefix(address.tls ? kSecure.size() : kPlain.size());
  const size_t path = std::min(rest.find('/'), rest.size());
  address.base = rest.substr(path);
  while (address.base.ends_with('/')) address.base.pop_back();
  const bool no_path = address.base.find_first_of("?#") != std::string::npos;
  if (no_path || (!address.base.empty() && !IsWord(address.base))) return bad;
  rest = rest.substr(0, path);

  const bool bracketed = rest.starts_with('[');
  const size_t end = bracketed ? rest.find(']') : std::min(rest.find(':'), rest.size());
  if (end == std::string_view::npos) return bad;
  address.host = rest.substr(bracketed ? 1 : 0, bracketed ? end - 1 : end);
  rest.remove_prefix(end + (bracketed ? 1 : 0));
  address.port = address.tls ? "443" : "80";
  if (rest.starts_with(':')) {
    address.port = rest.substr(1);
    rest = {};
  }
  if (!rest.empty() || !IsHost(address.host) || !IsPort(address.port)) return bad;
  return address;
}

std::string ServerAddress::Authority() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + port;
}

}  // namespace sluice::deviceplugin
