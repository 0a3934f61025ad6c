// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace train {

/// Images of 8x8 pixels from 0 to 16 and what digit each shows.
struct Digits {
  std::vector<uint8_t> images;  // 64 per sample
  std::vector<uint8_t> labels;

  int samples() const { return static_cast<int>(labels.size()); }
};

/// Reads the format that data/LICENSE describes; false and one line in `*error` at the first bad
/// line.
bool ParseDigits(std::string_view text, Digits* digits, std::string* error);

}  // namespace train
