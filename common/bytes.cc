// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/bytes.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace sluice {
namespace {

struct Suffix {
  std::string_view name;
  double factor;
};
constexpr Suffix kSuffixes[] = {
    {"", 1},     {"k", 1e3},     {"K", 1e3},     {"M", 1e6},     {"G", 1e9},
    {"T", 1e12}, {"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40},
};

}  // namespace

Result<uint64_t> ParseBytes(std::string_view text, std::string_view field) {
  const Status bad(
      StatusCode::kInvalidArgument,
      std::string(field) + ": '" + std::string(text) +
          "' is not an amount of memory; allowed: a positive number and k, M, G, T, Ki, Mi, Gi "
          "or Ti with an optional B, for example 3GiB");
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number <= 0) return bad;
  std::string_view suffix(rest, static_cast<size_t>(text.data() + text.size() - rest));
  if (!suffix.empty() && suffix.front() == ' ') suffix.remove_prefix(1);
  if (!suffix.empty() && suffix.back() == 'B') suffix.remove_suffix(1);
  for (const Suffix& known : kSuffixes) {
    if (suffix != known.name) continue;
    const double bytes = number * known.factor;
    if (bytes < 1 || bytes >= 0x1p63) return bad;
    return static_cast<uint64_t>(std::llround(bytes));
  }
  return bad;
}

std::string FormatBytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

}  // namespace sluice
