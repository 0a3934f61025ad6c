// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace sluice {

/// One line `key = value` of a record.
struct Field {
  size_t line = 0;  // from 1
  std::string_view key;
  std::string_view value;
};

/// The lines behind `first_line`, which names format and version, as parts of `text`. A key comes
/// once, unless it is in `repeated`. kInvalidArgument: anything else, or a text that was cut off in
/// a line; the message begins with `what` and the line's number.
Result<std::vector<Field>> ParseFields(std::string_view text, std::string_view first_line,
                                       std::string_view what,
                                       const std::vector<std::string_view>& repeated);

/// The error for one of them: what is wrong with its value.
Status BadField(std::string_view what, const Field& field, const std::string& allowed);

/// A whole number, with nothing before or behind it.
bool ParseFieldNumber(std::string_view text, uint64_t* number);

/// Appends "key = value" and the end of the line.
void AppendField(std::string_view key, std::string_view value, std::string* text);

}  // namespace sluice
