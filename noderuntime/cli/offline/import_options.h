// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/status.h"

namespace CLI {
class App;
}

namespace sluice::cli {

/// sluice import FILE
struct ImportOptions {
  std::string file;
  std::string output;
  uint64_t device = 0;
  std::optional<uint64_t> from_us;
  std::optional<uint64_t> to_us;
  bool json = false;
};

/// The words of the command line on their way to ImportOptions.
class ImportFlags {
 public:
  explicit ImportFlags(CLI::App& app);
  ImportFlags(const ImportFlags&) = delete;  // the command line writes into it
  ImportFlags& operator=(const ImportFlags&) = delete;

  bool chosen() const;
  /// After the command line was read.
  Result<ImportOptions> Options() const;

 private:
  CLI::App* app_;
  ImportOptions options_;
};

}  // namespace sluice::cli
