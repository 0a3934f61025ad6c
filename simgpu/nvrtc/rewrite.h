// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "simgpu/nvrtc/scanner.h"

namespace sluice::simgpu::nvrtc {

/// A kernel that the module exports under `symbol`.
struct Export {
  std::string symbol;
  std::string expression;  // what names the function in C++
  bool barriers = false;
};

/// The identifier that a name expression such as `ns::kernel<float, 4>` ends in, before its
/// template arguments.
std::string BaseName(std::string_view expression);

/// A symbol for an instance: legible, and different for different expressions.
std::string LoweredName(const std::string& expression);

/// Preprocessed CUDA C made into C++: __global__ and __shared__ become what they mean on the host.
/// Line numbers stay. `scan` must come from the same text.
std::string RewriteSource(std::string_view source, const Scan& scan);

/// The lines that make the exports, to stand after the source and the launch header.
std::string ExportLines(const std::vector<Export>& exports);

}  // namespace sluice::simgpu::nvrtc
