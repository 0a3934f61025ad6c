// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/driver_version.h"

#include <charconv>

namespace sluice {

uint32_t MajorOfDriver(std::string_view version) {
  uint32_t major = 0;
  const char* const last = version.data() + version.size();
  const auto [end, error] = std::from_chars(version.data(), last, major);
  return error == std::errc() && (end == last || *end == '.') ? major : 0;
}

}  // namespace sluice
