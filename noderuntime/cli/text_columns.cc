// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/text_columns.h"

#include <algorithm>

namespace sluice::cli {

std::string AlignColumns(const std::vector<std::vector<std::string>>& rows, size_t indent,
                         size_t first_number, size_t last_number) {
  std::vector<size_t> width;
  for (const std::vector<std::string>& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line(indent, ' ');
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(width[i] - row[i].size(), ' ');
      const bool number = i >= first_number && i <= last_number;
      line += (i == 0 ? "" : "  ") + (number ? padding + row[i] : row[i] + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace sluice::cli
