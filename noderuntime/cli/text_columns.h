// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sluice::cli {

/// Rows of equally many cells as lines, columns as wide as their widest cell and two blanks apart,
/// those from `first_number` to `last_number` aligned to the right. `indent`: blanks before each
/// line. No blanks at ends of lines.
std::string AlignColumns(const std::vector<std::vector<std::string>>& rows, size_t indent,
                         size_t first_number, size_t last_number);

}  // namespace sluice::cli
