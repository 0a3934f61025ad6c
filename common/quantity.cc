// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/quantity.h"

#include <algorithm>
#include <optional>
#include <string>

namespace sluice {
namespace {

constexpr uint64_t kMost = uint64_t{1} << 62;
constexpr size_t kMaxShown = 64;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// value *= factor; false: more than kMost.
bool Multiply(uint64_t* value, uint64_t factor) {
  if (*value > kMost / factor) return false;
  *value *= factor;
  return true;
}

/// The mantissa without its point, and how many of its digits stood behind that.
struct Number {
  uint64_t digits = 0;
  int fraction = 0;
};

std::optional<Number> TakeNumber(std::string_view* text) {
  Number number;
  bool any = false;
  bool point = false;
  for (; !text->empty(); text->remove_prefix(1)) {
    const char c = text->front();
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (!IsDigit(c)) break;
    any = true;
    if (!Multiply(&number.digits, 10)) return std::nullopt;
    number.digits += static_cast<uint64_t>(c - '0');
    if (point) ++number.fraction;
  }
  // Zeros at the end of a fraction say nothing.
  while (number.fraction > 0 && number.digits % 10 == 0) {
    number.digits /= 10;
    --number.fraction;
  }
  return any ? std::optional(number) : std::nullopt;
}

struct Suffix {
  int twos = 0;  // powers of two
  int tens = 0;  // and of ten
};

std::optional<Suffix> ParseSuffix(std::string_view text) {
  constexpr std::string_view kBinary = "KMGTPE";
  constexpr std::string_view kDecimal = "kMGTPE";
  if (text.empty()) return Suffix{};
  if (text.size() == 2 && text[1] == 'i') {
    const size_t at = kBinary.find(text[0]);
    if (at == std::string_view::npos) return std::nullopt;
    return Suffix{10 * (static_cast<int>(at) + 1), 0};
  }
  if (text.size() == 1) {
    const size_t at = kDecimal.find(text[0]);
    if (at == std::string_view::npos) return std::nullopt;
    return Suffix{0, 3 * (static_cast<int>(at) + 1)};
  }
  if (text[0] != 'e' && text[0] != 'E') return std::nullopt;
  text.remove_prefix(1);
  const bool negative = text[0] == '-';
  if (text[0] == '-' || text[0] == '+') text.remove_prefix(1);
  if (text.empty() || text.size() > 2 || !std::all_of(text.begin(), text.end(), IsDigit)) {
    return std::nullopt;
  }
  int tens = 0;
  for (const char c : text) tens = 10 * tens + (c - '0');
  return Suffix{0, negative ? -tens : tens};
}

/// Nothing: too large, or no whole number.
std::optional<uint64_t> Value(const Number& number, const Suffix& suffix) {
  uint64_t value = number.digits;
  if (value == 0) return value;
  int twos = suffix.twos;
  int tens = suffix.tens - number.fraction;
  // A fraction of a power of two may be whole: 0.5Ki.
  for (; tens < 0 && value % 10 == 0; ++tens) value /= 10;
  for (; tens < 0 && value % 5 == 0 && twos > 0; ++tens, --twos) value /= 5;
  if (tens < 0) return std::nullopt;
  for (; twos > 0; --twos) {
    if (!Multiply(&value, 2)) return std::nullopt;
  }
  for (; tens > 0; --tens) {
    if (!Multiply(&value, 10)) return std::nullopt;
  }
  return value;
}

}  // namespace

Result<uint64_t> ParseQuantity(std::string_view text, std::string_view field) {
  std::string_view rest = text;
  if (rest.starts_with('+')) rest.remove_prefix(1);
  const std::optional<Number> number = TakeNumber(&rest);
  const std::optional<Suffix> suffix = number ? ParseSuffix(rest) : std::nullopt;
  const std::optional<uint64_t> value = suffix ? Value(*number, *suffix) : std::nullopt;
  if (value.has_value()) return *value;
  return Status(StatusCode::kInvalidArgument,
                std::string(field) + " '" + std::string(text.substr(0, kMaxShown)) +
                    "': allowed: a whole number of bytes as Kubernetes writes quantities, for "
                    "example 16Gi, 1500M or 2e9");
}

}  // namespace sluice
