// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/unit/simgpu/nvrtc_module.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace sluice::simgpu::nvrtc {

std::string DecodeBase64(const std::string& text) {
  std::string bytes;
  unsigned bits = 0, count = 0;
  for (char c : text) {
    unsigned value = 0;
    if (c >= 'A' && c <= 'Z') {
      value = static_cast<unsigned>(c - 'A');
    } else if (c >= 'a' && c <= 'z') {
      value = static_cast<unsigned>(c - 'a') + 26;
    } else if (c >= '0' && c <= '9') {
      value = static_cast<unsigned>(c - '0') + 52;
    } else if (c == '+' || c == '/') {
      value = c == '+' ? 62 : 63;
    } else {
      continue;
    }
    bits = bits << 6 | value;
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 0xff);
    }
  }
  return bytes;
}

NvrtcModule::NvrtcModule(const std::string& source, const std::vector<std::string>& expressions,
                         const std::vector<std::string>& options)
    : program_(source, "test.cu", {}) {
  for (const std::string& expression : expressions) {
    EXPECT_EQ(program_.AddNameExpression(expression), NVRTC_SUCCESS);
  }
  EXPECT_EQ(program_.Compile(options), NVRTC_SUCCESS) << program_.log();
  const std::string object = DecodeBase64(program_.image().substr(program_.image().find('\n') + 1));
  char file[] = "/tmp/nvrtc-module-XXXXXX";
  const int fd = mkstemp(file);
  EXPECT_EQ(write(fd, object.data(), object.size()), static_cast<ssize_t>(object.size()));
  close(fd);
  library_ = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library_, nullptr) << dlerror();
  unlink(file);
}

NvrtcModule::~NvrtcModule() {
  if (library_ != nullptr) dlclose(library_);
}

void* NvrtcModule::Variable(const std::string& name) const {
  return library_ != nullptr ? dlsym(library_, name.c_str()) : nullptr;
}

const SimgpuKernel* NvrtcModule::Find(const std::string& name) const {
  return static_cast<const SimgpuKernel*>(Variable(SIMGPU_KERNEL_PREFIX + name));
}

std::string NvrtcModule::Lowered(const std::string& expression) const {
  const char* name = nullptr;
  EXPECT_EQ(program_.LoweredNameOf(expression, &name), NVRTC_SUCCESS);
  return name != nullptr ? name : "";
}

void NvrtcModule::RunWithParams(const std::string& name, Dim grid, Dim block,
                                const void* const* params) const {
  const SimgpuKernel* kernel = Find(name);
  ASSERT_NE(kernel, nullptr) << name;
  const unsigned g[3] = {grid.x, grid.y, grid.z};
  const unsigned b[3] = {block.x, block.y, block.z};
  kernel->run(params, g, b, 0);
}

}  // namespace sluice::simgpu::nvrtc
