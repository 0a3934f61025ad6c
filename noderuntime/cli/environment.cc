// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/environment.h"

#include <unistd.h>

namespace sluice::cli {
namespace {

/// The items of a list separated by any of `separators`; empty items vanish.
std::vector<std::string> Items(const std::string& list, const char* separators) {
  std::vector<std::string> items;
  size_t start = 0;
  while (start < list.size()) {
    const size_t end = std::min(list.find_first_of(separators, start), list.size());
    if (end > start) items.push_back(list.substr(start, end - start));
    start = end + 1;
  }
  return items;
}

std::string Join(const std::vector<std::string>& items) {
  std::string joined;
  for (const std::string& item : items) {
    if (!joined.empty()) joined += ':';
    joined += item;
  }
  return joined;
}

}  // namespace

Environment Environment::Current() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    environment.entries_.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

std::optional<std::string> Environment::Get(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return std::nullopt;
  return found->second;
}

void Environment::Prepend(const std::string& name, const std::string& value) {
  Remove(name, value);
  std::string& list = entries_[name];
  list = list.empty() ? value : value + ':' + list;
}

void Environment::Remove(const std::string& name, std::string_view value) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return;
  const std::vector<std::string> items = Items(found->second, ": ");
  std::vector<std::string> kept;
  for (const std::string& item : items) {
    if (item != value) kept.push_back(item);
  }
  // A list that does not hold the value stays as the user wrote it, empty items and all.
  if (kept.size() == items.size()) return;
  if (kept.empty()) {
    entries_.erase(found);
  } else {
    found->second = Join(kept);
  }
}

std::vector<std::string> Environment::Entries() const {
  std::vector<std::string> entries;
  for (const auto& [name, value] : entries_) entries.push_back(name + '=' + value);
  return entries;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace sluice::cli
