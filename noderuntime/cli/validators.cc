// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/validators.h"

#include <algorithm>

namespace sluice::cli {

CLI::Validator Integer(uint64_t low, uint64_t high) {
  return Between<uint64_t>(
      low, high, "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
}

CLI::Validator OneOf(std::vector<std::string> names) {
  std::string allowed;
  for (const std::string& name : names) allowed += (allowed.empty() ? "" : ", ") + name;
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        if (std::find(names.begin(), names.end(), text) != names.end()) return "";
        return "'" + text + "'; allowed: " + allowed;
      },
      allowed);
}

CLI::Validator FileToWrite() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        if (text.empty()) return "''; allowed: the name of a file";
        if (text != "-") return "";
        return "'-'; allowed: the name of a file (./- for one that is called so)";
      },
      "");
}

}  // namespace sluice::cli
