// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/printable.h"

/// How what a daemon answers (DaemonClient) is read: it may be of another version, so what is not
/// there, or is of another kind, is nothing. `Json` is nlohmann's, ordered or not; nothing throws.
namespace sluice::cli::answer {

/// null: there is no such member, or `object` is no object. Lives as long as `object`.
template <class Json>
const Json& Member(const Json& object, const char* key) {
  static const Json nothing;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() ? *found : nothing;
}

template <class Json>
std::optional<uint64_t> MaybeNumber(const Json& object, const char* key) {
  const Json& value = Member(object, key);
  return value.is_number_unsigned() ? std::optional(value.template get<uint64_t>()) : std::nullopt;
}

template <class Json>
uint64_t Number(const Json& object, const char* key) {
  return MaybeNumber(object, key).value_or(0);
}

/// For people (Printable).
template <class Json>
std::string Text(const Json& object, const char* key) {
  const Json& value = Member(object, key);
  return value.is_string() ? Printable(value.template get<std::string>()) : "";
}

}  // namespace sluice::cli::answer
