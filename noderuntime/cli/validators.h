// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

/// Checks of the command line that answer in one form: what was given and what is allowed.
namespace sluice::cli {

/// Every number from `low` to `high`; `allowed` says so.
template <typename Number>
CLI::Validator Between(Number low, Number high, const std::string& allowed) {
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        Number value{};
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool whole = error == std::errc() && end == text.data() + text.size();
        if (whole && value >= low && value <= high) return "";
        return "'" + text + "'; allowed: " + allowed;
      },
      allowed);
}

CLI::Validator Integer(uint64_t low, uint64_t high);
CLI::Validator OneOf(std::vector<std::string> names);
/// The standard output has the command's own answer, so `-` is no file.
CLI::Validator FileToWrite();

}  // namespace sluice::cli
