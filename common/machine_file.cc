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

enum class Found { kText, kFolder, kNothing };

Found ReadText(const std::string& path, std::string* text) {
  // A stream opens a folder, too, and reads nothing from it.
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return Found::kFolder;
  std::ifstream file(path);
  if (!file) return Found::kNothing;
  std::ostringstream all;
  all << file.rdbuf();
  *text = all.str();
  return file.good() || file.eof() ? Found::kText : Found::kNothing;
}

Status NoText(Found found, const std::string& name) {
  if (found == Found::kFolder) {
    return Status(StatusCode::kInvalidArgument, "machine file " + name + ": is a directory");
  }
  return Status(StatusCode::kNotFound, "cannot read machine file " + name);
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
  const Found found = ReadText(name, &text);
  if (found == Found::kText) return text;
  const bool bare = name.find('/') == std::string::npos;
  if (bare && ReadText(shipped + "/" + name + kEnding, &text) == Found::kText) return text;
  const Status status = NoText(found, name);
  if (!bare || found == Found::kFolder) return status;
  return Status(status.code(), status.message() + "; allowed: a path, or one of " + Known(shipped));
}

Result<Machine> ReadNamedMachine(const std::string& name, const std::string& shipped) {
  const Result<std::string> text = ReadMachineText(name, shipped);
  if (!text.ok()) return text.status();
  if (text->find_first_not_of(" \t\r\n") == std::string::npos) {
    return Status(StatusCode::kInvalidArgument,
                  "machine file " + name + ": is empty; allowed: lines of 'key = value'");
  }
  return ParseMachine(*text, name);
}

Result<Machine> ReadMachineFile(const std::string& path) {
  std::string text;
  const Found found = ReadText(path, &text);
  return found == Found::kText ? ParseMachine(text, path) : NoText(found, path);
}

}  // namespace sluice
