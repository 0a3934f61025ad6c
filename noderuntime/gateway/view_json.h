// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/metrics/family.h"

/// How a daemon's status is read: what is not there, or is of another kind, is nothing.
namespace sluice::gateway {

using Json = nlohmann::json;

inline const Json& Member(const Json& object, const char* key) {
  static const Json nothing;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() ? *found : nothing;
}

inline std::optional<uint64_t> Number(const Json& object, const char* key) {
  const Json& value = Member(object, key);
  return value.is_number_unsigned() ? std::optional(value.get<uint64_t>()) : std::nullopt;
}

inline std::string Text(const Json& object, const char* key) {
  const Json& value = Member(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

/// {"name": count, ...}
inline std::optional<std::map<std::string, uint64_t>> Counts(const Json& object, const char* key) {
  const Json& value = Member(object, key);
  if (!value.is_object()) return std::nullopt;
  std::map<std::string, uint64_t> counts;
  for (const auto& [name, count] : value.items()) {
    if (count.is_number_unsigned()) counts[name] = count.get<uint64_t>();
  }
  return counts;
}

inline std::vector<uint64_t> Numbers(const Json& object, const char* key) {
  std::vector<uint64_t> numbers;
  for (const Json& value : Member(object, key)) {
    if (!value.is_number_unsigned()) return {};
    numbers.push_back(value.get<uint64_t>());
  }
  return numbers;
}

/// {"counts": [...], "sum_ns": n}, and the bounds that stand elsewhere.
inline std::optional<metrics::Histogram> HistogramIn(const Json& object, const char* key,
                                                     const std::vector<uint64_t>& bounds_ns) {
  const Json& value = Member(object, key);
  if (!value.is_object()) return std::nullopt;
  return metrics::Histogram{bounds_ns, Numbers(value, "counts"),
                            Number(value, "sum_ns").value_or(0)};
}

}  // namespace sluice::gateway
