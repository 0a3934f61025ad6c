// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/cuda/nvrtc_api.h"
#include "simgpu/nvrtc/builder.h"
#include "simgpu/nvrtc/options.h"
#include "simgpu/nvrtc/rewrite.h"

namespace sluice::simgpu::nvrtc {

/// One nvrtcProgram: a source, and after Compile its log and image.
class Program {
 public:
  using Header = Builder::Header;

  Program(std::string source, std::string name, std::vector<Header> headers)
      : source_(std::move(source)), name_(std::move(name)), headers_(std::move(headers)) {}

  nvrtcResult AddNameExpression(const std::string& expression);
  nvrtcResult Compile(const std::vector<std::string>& options);
  nvrtcResult LoweredNameOf(const std::string& expression, const char** lowered) const;

  const std::string& log() const { return log_; }
  /// The module's text; empty before a successful Compile.
  const std::string& image() const { return image_; }
  bool has_cubin() const { return !image_.empty() && options_.real_arch; }
  /// Whether the last Compile found its object in the cache.
  bool from_cache() const { return from_cache_; }

 private:
  nvrtcResult Fail(const std::string& message, nvrtcResult result = NVRTC_ERROR_COMPILATION);
  /// Chooses what the module exports and gives each name expression its lowered name.
  nvrtcResult ChooseExports(const Scan& scan, std::vector<Export>* exports);

  std::string source_, name_;
  std::vector<Header> headers_;
  std::vector<std::string> expressions_;
  std::map<std::string, std::string> lowered_;
  Options options_;
  std::string log_, image_;
  bool tried_ = false, from_cache_ = false;
};

}  // namespace sluice::simgpu::nvrtc
