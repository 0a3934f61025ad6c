// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <algorithm>
#include <string>

namespace sluice::metrics {

/// ADDRESS:PORT, or [ADDRESS]:PORT for IPv6, with a port up to 65535; whether the machine has it is
/// another question.
inline bool IsAddress(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  const std::string host = text.substr(0, colon);
  const std::string port = text.substr(colon + 1);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  // Where an IPv6 address ends and the port begins is said by the bracket.
  if (host.find_first_of(":[]") != std::string::npos && !bracketed) return false;
  return !port.empty() && port.size() <= 5 &&
         std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
         std::stoul(port) <= 65535;
}

}  // namespace sluice::metrics
