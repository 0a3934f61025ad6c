// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <charconv>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

/// The command line of programs that use the driver.
namespace sluice::cuda {

struct Option {
  std::string name;
  std::string value;  // how the help shows it; empty: it takes none
  std::string text;
  std::string allowed;
  std::function<bool(const std::string&)> set;  // false: not allowed
};

template <class T>
bool ParseNumber(const std::string& text, T least, T most, T* number) {
  T parsed{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, parsed);
  if (error != std::errc() || stop != end || !(parsed >= least && parsed <= most)) return false;
  *number = parsed;
  return true;
}

template <class T>
Option Integer(std::string name, std::string text, T least, T most, T* number) {
  return {std::move(name), "N", std::move(text),
          "a whole number from " + std::to_string(least) + " to " + std::to_string(most),
          [=](const std::string& value) { return ParseNumber(value, least, most, number); }};
}

Option Real(std::string name, std::string text, double least, double most, double* number);
Option Flag(std::string name, std::string text, bool* flag);

/// Reads `--name value`, `--name=value` and flags; --help and -h set `*help`. What is no option
/// goes to `*others`, if that is not null. Returns false and sets `*error` to one line that names
/// the option and what it allows.
bool ParseOptions(const std::vector<Option>& table, const std::vector<std::string>& arguments,
                  std::vector<std::string>* others, bool* help, std::string* error);

/// One line for each option.
std::string DescribeOptions(const std::vector<Option>& table);

}  // namespace sluice::cuda
