// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace sluice::scheduler::trace {

/// The text of data/traces/<model>.trace.
inline std::string ReadTraceFile(const std::string& model) {
  const char* folder = std::getenv("SLUICE_TEST_TRACES");
  if (folder == nullptr) throw std::runtime_error("SLUICE_TEST_TRACES is not set");
  std::ifstream file(folder + ("/" + model + ".trace"), std::ios::binary);
  if (!file) throw std::runtime_error(model + ".trace cannot be opened");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace sluice::scheduler::trace
