// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/snapshot/pickle_text.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace sluice::scheduler::trace {

namespace {

void AppendUtf8(uint32_t character, std::string* text) {
  const auto byte = [text](uint32_t value) { *text += static_cast<char>(value); };
  const auto tail = [&byte](uint32_t value) { byte(0x80U | (value & 0x3fU)); };
  if (character < 0x80) {
    byte(character);
  } else if (character < 0x800) {
    byte(0xc0U | (character >> 6U));
    tail(character);
  } else if (character < 0x10000) {
    byte(0xe0U | (character >> 12U));
    tail(character >> 6U);
    tail(character);
  } else {
    byte(0xf0U | (character >> 18U));
    tail(character >> 12U);
    tail(character >> 6U);
    tail(character);
  }
}

std::optional<uint32_t> ReadHex(std::string_view digits) {
  uint32_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<DecimalInteger> ReadDecimalInteger(std::string_view text) {
  std::string_view digits = text;
  if (digits.substr(0, 1) == "-") digits.remove_prefix(1);
  const bool valid = !digits.empty() && std::all_of(digits.begin(), digits.end(),
                                                    [](char c) { return c >= '0' && c <= '9'; });
  if (!valid) return std::nullopt;
  DecimalInteger result;
  const auto error = std::from_chars(text.data(), text.data() + text.size(), result.value).ec;
  result.fits = error == std::errc();
  return result;
}

std::optional<double> ReadDecimalFloat(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::string> DecodeRawUnicode(std::string_view text) {
  std::string decoded;
  size_t at = 0;
  while (at < text.size()) {
    const char kind = text[at] == '\\' && at + 1 < text.size() ? text[at + 1] : ' ';
    if (kind != 'u' && kind != 'U') {
      AppendUtf8(static_cast<unsigned char>(text[at++]), &decoded);
      continue;
    }
    const size_t length = kind == 'u' ? 4 : 8;
    if (text.size() - at < length + 2) return std::nullopt;
    const std::optional<uint32_t> character = ReadHex(text.substr(at + 2, length));
    if (!character.has_value() || *character > 0x10ffff) return std::nullopt;
    AppendUtf8(*character, &decoded);
    at += length + 2;
  }
  return decoded;
}

}  // namespace sluice::scheduler::trace
