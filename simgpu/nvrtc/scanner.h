// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Finds the kernels in preprocessed CUDA C. It reads tokens and braces, not C++: all that needs
/// the language itself (parameter types, templates) is left to the compiler.
namespace sluice::simgpu::nvrtc {

enum class TokenKind { kIdentifier, kNumber, kString, kPunctuation };

struct Token {
  TokenKind kind;
  std::string_view text;  // points into the scanned source
  size_t offset;
};

/// Splits into tokens. Comments, white space and lines that start with '#' (line markers and
/// pragmas of preprocessed text) are dropped.
std::vector<Token> Tokenize(std::string_view source);

struct Kernel {
  std::string name;       // as written
  std::string qualified;  // with its namespaces
  bool c_linkage = false;
  bool is_template = false;
  bool barriers = false;  // it, or a function it may call, waits for other threads
  size_t marker = 0;      // offset of its __global__
  bool says_inline = false;
};

/// One `extern __shared__ T name[];`
struct DynamicShared {
  size_t begin, end;  // from `extern` up to and with the semicolon
  std::string type, name;
};

struct Scan {
  std::vector<Kernel> kernels;  // definitions, in source order
  std::vector<DynamicShared> dynamic_shared;
  std::vector<size_t> shared_markers;  // offsets of every other __shared__
  std::vector<size_t> global_markers;  // offsets of __global__ on declarations without a body
  std::string error;                   // empty: understood
};

Scan ScanSource(std::string_view source);

}  // namespace sluice::simgpu::nvrtc
