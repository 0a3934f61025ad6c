// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {

/// The first character of a text that is not empty.
struct Character {
  size_t bytes = 1;
  uint32_t code = 0;   // the byte itself where it is no UTF-8 (RFC 3629, section 4)
  bool utf8 = false;   // false: one byte that is none
  bool shown = false;  // false: no terminal or log gets it from outside (Printable)
};
Character FirstCharacter(std::string_view text);

/// What came from outside (names of jobs, pods and programs, texts that quote input), as people get
/// it: on terminals, in logs and in events of Kubernetes. What controls a terminal, ends a line or
/// turns the direction of what stands beside it, and what is no UTF-8, is written out: `\u009b`,
/// `\u202e`, `\xff`. All else stays. Applied again it changes nothing.
std::string Printable(std::string_view text);
/// The same for a text of several lines: line feeds stay.
std::string PrintableLines(std::string_view text);

/// As much of `text` as fits in `most` bytes without half a character.
std::string_view CutText(std::string_view text, size_t most);

}  // namespace sluice
