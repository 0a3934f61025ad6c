// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/text/lines.h"

#include <algorithm>

#include "scheduler/text/fault.h"

namespace sluice::scheduler::text {

namespace {

Status Invalid(const std::string& what) { return {StatusCode::kInvalidArgument, what}; }

std::string HexByte(unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  return std::string("0x") + kDigits[byte >> 4U] + kDigits[byte & 15U];
}

}  // namespace

Result<std::string_view> LineReader::Next() {
  ++number_;
  const size_t length = left_.find('\n');
  if (std::min(length, left_.size()) > kMaxLineBytes) {
    return Invalid("longer than " + std::to_string(kMaxLineBytes) + " bytes");
  }
  std::string_view line = left_.substr(0, length);
  if (ends_ == LineEnds::kAny && line.ends_with('\r')) line.remove_suffix(1);
  const auto odd = std::find_if_not(line.begin(), line.end(), IsPrintable);
  if (odd != line.end()) {
    const std::string column = " in column " + std::to_string(odd - line.begin() + 1);
    if (*odd == '\r') {
      return Invalid("carriage return" + column +
                     (ends_ == LineEnds::kAny ? ", but only one may be before a line feed"
                                              : ", lines end in a line feed alone"));
    }
    return Invalid("byte " + HexByte(static_cast<unsigned char>(*odd)) + column +
                   ", must be a printable ASCII character");
  }
  const bool ended = length != std::string_view::npos;
  if (!ended && ends_ == LineEnds::kLineFeed) return Invalid("does not end in a line feed");
  left_.remove_prefix(ended ? length + 1 : left_.size());
  return line;
}

size_t SplitFields(std::string_view line, std::span<std::string_view> fields) {
  size_t count = 0;
  while (true) {
    if (count == fields.size()) return count + 1;
    const size_t blank = line.find(' ');
    fields[count++] = line.substr(0, blank);
    if (blank == std::string_view::npos) return count;
    line.remove_prefix(blank + 1);
  }
}

Result<uint64_t> ReadNumber(std::string_view field, std::string_view text) {
  const bool digits =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (text.empty() || !digits || (text.size() > 1 && text.front() == '0')) {
    return Fault(field, Quoted(text) +
                            " is not a number, must be decimal digits without sign and "
                            "leading zeros");
  }
  uint64_t value = 0;
  for (const char c : text) {
    // Far from overflow: what is above the limit ends the loop.
    value = value * 10 + static_cast<uint64_t>(c - '0');
    if (value > kMaxNumber) {
      return Fault(field,
                   Quoted(text) + " is too large, must be at most " + std::to_string(kMaxNumber));
    }
  }
  return value;
}

std::string Quoted(std::string_view text) {
  constexpr size_t kMost = 40;
  return '"' + std::string(text.substr(0, kMost)) + (text.size() > kMost ? "...\"" : "\"");
}

}  // namespace sluice::scheduler::text
