// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/printable.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

namespace sluice {
namespace {

/// Code points that are not shown, by Unicode's general categories: controls (Cc), ends of lines
/// (Zl, Zp), and of the formats (Cf) those that turn the direction or are seen nowhere. Joiners
/// stay: scripts and emoji need them.
constexpr uint32_t kHidden[][2] = {
    {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},     {0x061c, 0x061c},
    {0x180e, 0x180e}, {0x200b, 0x200b}, {0x200e, 0x200f}, {0x2028, 0x202e},
    {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
};

bool IsShown(uint32_t code) {
  return std::none_of(std::begin(kHidden), std::end(kHidden),
                      [code](const auto& range) { return code >= range[0] && code <= range[1]; });
}

std::string WrittenOut(std::string_view text, bool lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character first = FirstCharacter(text);
    if (first.shown || (lines && text.front() == '\n')) {
      out += text.substr(0, first.bytes);
    } else {
      char escape[12];
      const char* format = !first.utf8 ? "\\x%02x" : first.code > 0xffff ? "\\U%08x" : "\\u%04x";
      std::snprintf(escape, sizeof escape, format, static_cast<unsigned>(first.code));
      out += escape;
    }
    text.remove_prefix(first.bytes);
  }
  return out;
}

}  // namespace

Character FirstCharacter(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const Character none = {1, first, false, false};
  if (first < 0x80) return {1, first, true, IsShown(first)};
  const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || size > text.size()) return none;
  uint32_t code = first & (0xFFu >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return none;
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  // Longer than need be, a half of a pair, or beyond the last one.
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[size] || (code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF) return none;
  return {size, code, true, IsShown(code)};
}

std::string Printable(std::string_view text) { return WrittenOut(text, false); }

std::string PrintableLines(std::string_view text) { return WrittenOut(text, true); }

std::string_view CutText(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most;
  // A character has four bytes at most; what is none may be cut anywhere.
  while (end > 0 && most - end < 4 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, most - end < 4 ? end : most);
}

}  // namespace sluice
