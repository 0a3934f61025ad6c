// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// The arguments that protocols 0 and 1 of pickle write as a line of text.
namespace sluice::scheduler::trace {

/// A decimal integer of any length: `fits` says whether `value` holds it.
struct DecimalInteger {
  bool fits = false;
  int64_t value = 0;
};

/// nullopt unless it is digits, perhaps behind a minus.
std::optional<DecimalInteger> ReadDecimalInteger(std::string_view text);

/// nullopt unless all of it is one number as Python's repr() writes a float.
std::optional<double> ReadDecimalFloat(std::string_view text);

/// Python's raw-unicode-escape (Latin-1 with \uXXXX and \UXXXXXXXX) as UTF-8; nullopt where an
/// escape is cut short or is no character.
std::optional<std::string> DecodeRawUnicode(std::string_view text);

}  // namespace sluice::scheduler::trace
