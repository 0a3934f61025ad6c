// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

namespace sluice::simgpu::nvrtc {

/// What the options of nvrtcCompileProgram mean to the host's compiler.
struct Options {
  int arch = 52;           // compute capability times ten; NVRTC's own default
  bool real_arch = false;  // sm_NN, not compute_NN: then there is a CUBIN too
  std::string standard = "gnu++17";
  std::vector<std::string> compiler_flags;  // -I, -D, -U, -include
};

inline constexpr int kSupportedArchs[] = {50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90};

/// Returns false and says why in `*error` at the first option that is not known or has a bad value.
bool ParseOptions(const std::vector<std::string>& arguments, Options* options, std::string* error);

}  // namespace sluice::simgpu::nvrtc
