// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <array>
#include <string>
#include <vector>

#include "common/cuda/nvrtc_api.h"
#include "simgpu/module/kernel_abi.h"
#include "simgpu/nvrtc/program.h"

namespace sluice::simgpu::nvrtc {

struct Dim {
  unsigned x = 1, y = 1, z = 1;
};

/// Compiles CUDA C and runs its kernels in this process, without a driver. A source that does not
/// compile fails the test that uses it.
class NvrtcModule {
 public:
  explicit NvrtcModule(const std::string& source, const std::vector<std::string>& expressions = {},
                       const std::vector<std::string>& options = {});
  ~NvrtcModule();
  NvrtcModule(const NvrtcModule&) = delete;
  NvrtcModule& operator=(const NvrtcModule&) = delete;

  const SimgpuKernel* Find(const std::string& name) const;
  void* Variable(const std::string& name) const;
  std::string Lowered(const std::string& expression) const;

  void RunWithParams(const std::string& name, Dim grid, Dim block, const void* const* params) const;

  template <class... Arguments>
  void Run(const std::string& name, Dim grid, Dim block, Arguments... arguments) const {
    const std::array<const void*, sizeof...(Arguments) + 1> params = {&arguments..., nullptr};
    RunWithParams(name, grid, block, params.data());
  }

 private:
  Program program_;
  void* library_ = nullptr;
};

/// The bytes that the base64 text stands for; an implementation of its own, for comparison.
std::string DecodeBase64(const std::string& text);

}  // namespace sluice::simgpu::nvrtc
