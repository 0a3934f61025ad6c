// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/status.h"

/// The characters of a text of records: lines, fields, numbers. Views point into the text. For all
/// formats that are read from files.
namespace sluice::scheduler::text {

/// Without the line feed. The longest of data/traces has 15 KiB.
inline constexpr size_t kMaxLineBytes = size_t{1} << 20;
/// Of every number: exact in a double too, and far from the end of 64 bits.
inline constexpr uint64_t kMaxNumber = uint64_t{1} << 53;

enum class LineEnds : uint8_t {
  kLineFeed,  // of every line: equal texts are equal bytes
  kAny,       // or a carriage return and a line feed, or of the last line nothing
};

/// Hands out a text line by line. A line has at most kMaxLineBytes printable ASCII characters.
class LineReader {
 public:
  explicit LineReader(std::string_view text, LineEnds ends = LineEnds::kLineFeed)
      : left_(text), ends_(ends) {}

  bool done() const { return left_.empty(); }
  /// The next line without its end; not after done(). An error says what is wrong with it, not
  /// which it is.
  Result<std::string_view> Next();
  /// Of the line that Next() handed out or refused; 1 for the first, 1 before it as well.
  size_t number() const { return number_ == 0 ? 1 : number_; }

 private:
  std::string_view left_;
  LineEnds ends_;
  size_t number_ = 0;
};

/// Splits at each single blank; two blanks have an empty field between them. Fills `fields` as far
/// as they go and returns how many the line has, counting no further than one too many.
size_t SplitFields(std::string_view line, std::span<std::string_view> fields);

/// A decimal number of at most kMaxNumber: digits only, no sign, no zeros in front.
Result<uint64_t> ReadNumber(std::string_view field, std::string_view text);

/// ASCII from the blank to the tilde.
constexpr bool IsPrintable(char c) { return c >= ' ' && c <= '~'; }

/// `text` in quotes for a message, cut where it is long.
std::string Quoted(std::string_view text);

}  // namespace sluice::scheduler::text
