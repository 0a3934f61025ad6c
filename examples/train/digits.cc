// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "examples/train/digits.h"

namespace train {
namespace {

constexpr size_t kPixels = 64;

/// 0 to 9, a to g for 10 to 16; -1: neither.
int PixelValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'g') return c - 'a' + 10;
  return -1;
}

bool ParseLine(std::string_view line, Digits* digits) {
  if (line.size() != kPixels + 2 || line[kPixels] != ' ') return false;
  const char label = line[kPixels + 1];
  if (label < '0' || label > '9') return false;
  for (char c : line.substr(0, kPixels)) {
    const int value = PixelValue(c);
    if (value < 0) return false;
    digits->images.push_back(static_cast<uint8_t>(value));
  }
  digits->labels.push_back(static_cast<uint8_t>(label - '0'));
  return true;
}

}  // namespace

bool ParseDigits(std::string_view text, Digits* digits, std::string* error) {
  *digits = {};
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    if (!ParseLine(text.substr(0, end), digits)) {
      *error =
          "line " + std::to_string(number) + " is not 64 pixels from 0 to g, a space and a digit";
      return false;
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  if (digits->labels.empty()) {
    *error = "no images";
    return false;
  }
  return true;
}

}  // namespace train
