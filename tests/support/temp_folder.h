// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace sluice::testing {

/// A new folder, which is removed with all that is in it. It has a short path where `below` has
/// one: a socket's may have 107 characters.
class TempFolder {
 public:
  explicit TempFolder(const std::string& below = "/tmp") : path_(below + "/sluice-test-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error(path_);
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace sluice::testing
