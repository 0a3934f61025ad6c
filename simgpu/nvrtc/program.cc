// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/nvrtc/program.h"

#include <algorithm>
#include <string_view>

#include "simgpu/module/image.h"
#include "simgpu/nvrtc/toolchain.h"

namespace sluice::simgpu::nvrtc {
nvrtcResult Program::Fail(const std::string& message, nvrtcResult result) {
  log_ += message;
  if (!log_.empty() && log_.back() != '\n') log_ += '\n';
  return result;
}

nvrtcResult Program::AddNameExpression(const std::string& expression) {
  if (tried_) return NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
  expressions_.push_back(expression);
  return NVRTC_SUCCESS;
}

nvrtcResult Program::LoweredNameOf(const std::string& expression, const char** lowered) const {
  if (!tried_) return NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
  const auto found = lowered_.find(expression);
  if (found == lowered_.end()) return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
  *lowered = found->second.c_str();
  return NVRTC_SUCCESS;
}

nvrtcResult Program::ChooseExports(const Scan& scan, std::vector<Export>* exports) {
  for (const Kernel& kernel : scan.kernels) {
    if (kernel.c_linkage && !kernel.is_template) {
      exports->push_back({kernel.name, kernel.qualified, kernel.barriers});
    }
  }
  lowered_.clear();
  for (const std::string& expression : expressions_) {
    const std::string base = BaseName(expression);
    const auto kernel = std::find_if(scan.kernels.begin(), scan.kernels.end(),
                                     [&](const Kernel& k) { return k.name == base; });
    if (kernel == scan.kernels.end()) {
      return Fail("error: name expression '" + expression + "' names no __global__ function",
                  NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID);
    }
    if (kernel->c_linkage && !kernel->is_template) {
      lowered_[expression] = kernel->name;
      continue;
    }
    const bool known = lowered_.contains(expression);
    lowered_[expression] = LoweredName(expression);
    const std::string name = expression.substr(expression.find_first_not_of("& "));
    if (!known) exports->push_back({lowered_[expression], name, kernel->barriers});
  }
  return NVRTC_SUCCESS;
}

nvrtcResult Program::Compile(const std::vector<std::string>& arguments) {
  tried_ = true;
  log_.clear();
  image_.clear();
  options_ = Options();
  std::string error;
  if (!ParseOptions(arguments, &options_, &error)) {
    return Fail("nvrtc: error: " + error, NVRTC_ERROR_INVALID_OPTION);
  }
  const auto compiler = FindCompiler(&error);
  if (!compiler) return Fail("nvrtc: error: " + error);
  Builder builder(*compiler, options_);
  if (!builder.WriteSources(source_, name_, headers_)) return Fail(builder.errors());
  size_t user = 0;
  const auto text = builder.Preprocess(&user);
  if (!text) return Fail(builder.errors());

  const std::string_view program = std::string_view(*text).substr(user);
  const Scan scan = ScanSource(program);
  if (!scan.error.empty()) return Fail(name_ + ": error: " + scan.error);
  std::vector<Export> exports;
  const nvrtcResult chosen = ChooseExports(scan, &exports);
  if (chosen != NVRTC_SUCCESS) return chosen;

  const auto object =
      builder.Build(text->substr(0, user) + RewriteSource(program, scan), ExportLines(exports));
  if (!object) return Fail(builder.errors());
  from_cache_ = builder.from_cache();
  image_ = EncodeImage(*object);
  return NVRTC_SUCCESS;
}

}  // namespace sluice::simgpu::nvrtc
