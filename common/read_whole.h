// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <utility>

namespace sluice {

/// The file's text; empty also where there is none or it cannot be read, for who treats these
/// alike.
inline std::string ReadWhole(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return std::move(text).str();
}

}  // namespace sluice
