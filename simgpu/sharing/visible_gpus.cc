// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

#include "simgpu/sharing/gpu_folders.h"

namespace sluice::simgpu {
namespace {

constexpr std::string_view kUuidPrefix = "GPU-";

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// The digits at its beginning; what follows them does not count ("1x" is 1), as with strtoul.
std::optional<uint32_t> ByNumber(std::string_view entry, size_t count) {
  if (entry.starts_with('+')) entry.remove_prefix(1);
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), number);
  if (error != std::errc() || number >= count) return std::nullopt;
  return number;
}

/// The only one whose UUID begins like this.
std::optional<uint32_t> ByUuid(std::string_view entry, const std::vector<std::string>& uuids) {
  std::optional<uint32_t> found;
  if (entry.size() <= kUuidPrefix.size()) return found;
  for (uint32_t i = 0; i < uuids.size(); ++i) {
    if (!uuids[i].starts_with(entry)) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

}  // namespace

std::vector<uint32_t> VisibleGpus(const char* text, const std::vector<std::string>& uuids) {
  std::vector<uint32_t> visible;
  if (text == nullptr) {
    visible.resize(uuids.size());
    std::iota(visible.begin(), visible.end(), 0);
    return visible;
  }
  std::string_view rest = text;
  // What the first entry is, all are.
  const bool by_uuid = Trim(rest).starts_with(kUuidPrefix);
  for (bool more = true; more;) {
    const size_t comma = rest.find(',');
    const std::string_view entry = Trim(rest.substr(0, comma));
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
    const std::optional<uint32_t> index =
        by_uuid ? ByUuid(entry, uuids) : ByNumber(entry, uuids.size());
    if (!index) break;
    if (std::find(visible.begin(), visible.end(), *index) != visible.end()) return {};
    visible.push_back(*index);
  }
  return visible;
}

}  // namespace sluice::simgpu
