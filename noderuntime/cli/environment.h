// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

/// The environment of a process to be started: a value, so that what a job will see can be tested
/// without starting it.
class Environment {
 public:
  Environment() = default;
  /// A copy of this process's own.
  static Environment Current();

  std::optional<std::string> Get(const std::string& name) const;
  void Set(const std::string& name, std::string value) { entries_[name] = std::move(value); }
  void Unset(const std::string& name) { entries_.erase(name); }
  /// Puts `value` in front of a colon-separated list, once.
  void Prepend(const std::string& name, const std::string& value);
  /// Takes `value` out of a list separated by colons or spaces (both are separators in LD_PRELOAD).
  void Remove(const std::string& name, std::string_view value);

  /// "NAME=VALUE" each, sorted by name.
  std::vector<std::string> Entries() const;

 private:
  std::map<std::string, std::string> entries_;
};

/// argv or envp as exec wants it: pointers into `strings`, which must outlive the result.
std::vector<char*> Pointers(std::vector<std::string>& strings);

}  // namespace sluice::cli
