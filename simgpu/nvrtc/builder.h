// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simgpu/nvrtc/options.h"
#include "simgpu/nvrtc/toolchain.h"

namespace sluice::simgpu::nvrtc {

/// Drives the host's compiler over one program, in a folder of its own. Every step that fails
/// leaves its reason in `errors()`.
class Builder {
 public:
  using Header = std::pair<std::string, std::string>;  // name in #include, text

  Builder(std::string compiler, const Options& options)
      : compiler_(std::move(compiler)), options_(options) {}

  /// Puts the program and the device headers into the folder. Diagnostics will call it `name`.
  bool WriteSources(const std::string& source, const std::string& name,
                    const std::vector<Header>& headers);

  /// The preprocessed text: the device headers, then the program from `*user_begin` on.
  std::optional<std::string> Preprocess(size_t* user_begin);

  /// The shared object for `translated` (preprocessed and rewritten) with the lines `exports` after
  /// it; out of the cache if it is there.
  std::optional<std::string> Build(const std::string& translated, const std::string& exports);

  const std::string& errors() const { return errors_; }
  bool from_cache() const { return from_cache_; }

 private:
  bool Run(const std::vector<std::string>& arguments);
  /// The launch header and the exports, preprocessed: they are appended to a text that already is.
  std::optional<std::string> PreprocessFooter(const std::string& exports);
  std::vector<std::string> CodeFlags(bool gcc) const;

  std::string compiler_;
  Options options_;
  ScratchDir scratch_;
  std::string file_;  // the program's file in the folder
  std::string errors_;
  bool from_cache_ = false;
};

}  // namespace sluice::simgpu::nvrtc
