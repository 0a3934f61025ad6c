// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sluice::simgpu::nvrtc {

/// The host's C++ compiler: $SLUICE_SIMGPU_CXX, else the first of c++, g++ and clang++ in $PATH.
/// nullopt: `*error` says what was looked for and how to get one.
std::optional<std::string> FindCompiler(std::string* error);

struct RunResult {
  bool ok = false;     // started and ended with status 0
  std::string errors;  // what it wrote to stderr, or why it could not be started
};

/// Runs `command[0]` in `directory` and waits for it. Preloaded libraries and library paths of this
/// process are kept from it: they were meant for a GPU program.
RunResult RunTool(const std::vector<std::string>& command, const std::string& directory);

/// A directory that vanishes with its object.
class ScratchDir {
 public:
  ScratchDir();
  ~ScratchDir();
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;

  /// Empty: it could not be made.
  const std::string& path() const { return path_; }
  /// Writes `path()/name`, making folders as needed.
  bool Write(const std::string& name, const std::string& content) const;
  std::optional<std::string> Read(const std::string& name) const;

 private:
  std::string path_;
};

}  // namespace sluice::simgpu::nvrtc
