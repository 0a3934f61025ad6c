// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/machine_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace sluice {
namespace {

constexpr char kEnding[] = ".machine";

bool ReadText(const std::string& path, std::string* text) {
  std::ifstream file(path);
  if (!file) return false;
  std::ostringstream all;
  all << file.rdbuf();
  *text = all.str();
  return file.good() || file.eof();
}

std::string Known(const std::string& shipped) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(shipped, error)) {
    if (entry.path().extension() == kEnding) names.insert(entry.path().stem().string());
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

Result<std::string> ReadMachineText(const std::string& name, const std::string& shipped) {
  std::string text;
  if (ReadText(name, &text)) return text;
  const bool bare = name.find('/') == std::string::npos;
  if (bare && ReadText(shipped + "/" + name + kEnding, &text)) return text;
  std::string message = "cannot read machine file " + name;
  if (bare) message += "; allowed: a path, or one of " + Known(shipped);
  return Status(StatusCode::kNotFound, message);
}

Result<Machine> ReadMachineFile(const std::string& path) {
  std::string text;
  if (!ReadText(path, &text)) {
    return Status(StatusCode::kNotFound, "cannot read machine file " + path);
  }
  return ParseMachine(text, path);
}

}  // namespace sluice
