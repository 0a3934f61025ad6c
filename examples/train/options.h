// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace train {

enum class Optimizer { kSgd, kAdam };

/// Sizes of the network; all that decides how much memory an iteration needs.
struct Shape {
  int batch = 1024;
  int channels = 4;
  int depth = 3;   // residual blocks, each with one convolution
  int stages = 3;  // affine, gate, product: three feature maps each, per block
  int hidden = 64;
};

struct Options {
  Shape shape;
  int iterations = 200;
  Optimizer optimizer = Optimizer::kSgd;
  double learning_rate = 0.05;
  double momentum = 0.9;
  uint64_t seed = 1;
  int device = 0;
  int print_lag = 4;
  std::string data;  // file; empty: the built-in copy
  bool help = false;
};

/// Reads the arguments after the program's name. Returns false and sets `*error` to one line that
/// names the option and what it allows.
bool ParseOptions(const std::vector<std::string>& arguments, Options* options, std::string* error);

std::string HelpText();

}  // namespace train
