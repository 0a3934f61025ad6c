// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/metrics/family.h"
#include "noderuntime/cli/answer.h"

/// What of a daemon's status is more than one number or text.
namespace sluice::gateway {

using Json = nlohmann::json;

using cli::answer::Member;
using cli::answer::Text;

inline std::optional<uint64_t> Number(const Json& object, const char* key) {
  return cli::answer::MaybeNumber(object, key);
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
