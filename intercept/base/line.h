// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace sluice {

/// One line for the user on stderr, built in place: "sluice: " + text. Unprintable bytes become
/// '?', since the text may have come over a socket.
class Line {
 public:
  Line();

  Line& Text(const char* text);
  Line& Text(const char* text, size_t max_bytes);
  Line& Number(uint64_t value);
  Line& Bytes(uint64_t bytes);  // "26.0 MiB"

  void Print();
  /// Only the first time that this text is printed in this process.
  void PrintOnce();

  /// The text so far, without the newline.
  const char* c_str() const { return text_; }

 private:
  void Put(char c);

  char text_[768];
  size_t length_ = 0;
};

}  // namespace sluice
