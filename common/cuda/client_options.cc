// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/cuda/client_options.h"

#include <cstdio>

namespace sluice::cuda {

Option Real(std::string name, std::string text, double least, double most, double* number) {
  char range[64];
  std::snprintf(range, sizeof range, "a number from %g to %g", least, most);
  return {std::move(name), "X", std::move(text), range,
          [=](const std::string& value) { return ParseNumber(value, least, most, number); }};
}

Option Flag(std::string name, std::string text, bool* flag) {
  return {std::move(name), "", std::move(text), "no value",
          [=](const std::string&) { return *flag = true; }};
}

bool ParseOptions(const std::vector<Option>& table, const std::vector<std::string>& arguments,
                  std::vector<std::string>* others, bool* help, std::string* error) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i];
    if (name == "--help" || name == "-h") {
      *help = true;
      continue;
    }
    if (others != nullptr && !name.starts_with('-')) {
      others->push_back(name);
      continue;
    }
    const size_t equals = name.find('=');
    const bool joined = equals != std::string::npos;
    std::string value = joined ? name.substr(equals + 1) : "";
    name = name.substr(0, equals);
    const Option* found = nullptr;
    for (const Option& option : table) {
      if (option.name == name) found = &option;
    }
    if (found == nullptr) {
      *error = "unknown option '" + name + "'; allowed are --help";
      for (const Option& option : table) *error += " " + option.name;
      return false;
    }
    const bool takes_value = !found->value.empty();
    if (takes_value && !joined) {
      if (i + 1 == arguments.size()) {
        *error = name + " needs a value: " + found->allowed;
        return false;
      }
      value = arguments[++i];
    }
    if ((!takes_value && joined) || !found->set(value)) {
      *error = name + " must be " + found->allowed;
      *error += ", not '" + value + "'";
      return false;
    }
  }
  return true;
}

std::string DescribeOptions(const std::vector<Option>& table) {
  std::string text;
  for (const Option& option : table) {
    std::string left = "  " + option.name + (option.value.empty() ? "" : " " + option.value);
    left.resize(left.size() < 22 ? 22 : left.size() + 1, ' ');
    text += left + option.text;
    text += option.value.empty() ? "\n" : " (" + option.allowed + ")\n";
  }
  return text;
}

}  // namespace sluice::cuda
