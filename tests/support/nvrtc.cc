// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/support/nvrtc.h"

#include <dlfcn.h>

#include "common/cuda/nvrtc_api.h"

namespace sluice::testing {
namespace {

struct Nvrtc {
#define SLUICE_NVRTC_MEMBER(result, name, params) PFN_##name name = nullptr;
  SLUICE_NVRTC_FUNCTIONS(SLUICE_NVRTC_MEMBER)
#undef SLUICE_NVRTC_MEMBER
};

Nvrtc Load() {
  // The development name first: it is what the simulated GPU's folder and toolkits both have.
  constexpr const char* kNames[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
                                    "libnvrtc.so.11.2"};
  void* library = nullptr;
  for (const char* name : kNames) {
    if (library == nullptr) library = ::dlopen(name, RTLD_NOW);
  }
  if (library == nullptr) throw std::runtime_error("no NVRTC: libnvrtc.so cannot be loaded");
  Nvrtc nvrtc;
#define SLUICE_NVRTC_FIND(result, name, params) \
  nvrtc.name = reinterpret_cast<PFN_##name>(::dlsym(library, #name));
  SLUICE_NVRTC_FUNCTIONS(SLUICE_NVRTC_FIND)
#undef SLUICE_NVRTC_FIND
  return nvrtc;
}

std::string FirstLine(std::string text) { return text.substr(0, text.find('\n')); }

}  // namespace

std::string CompileForCurrentDevice(Driver& driver, const char* source, const char* name) {
  const Nvrtc nvrtc = Load();
  CUdevice device = 0;
  int major = 0;
  int minor = 0;
  SLUICE_CU(driver, cuCtxGetDevice, &device);
  SLUICE_CU(driver, cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            device);
  SLUICE_CU(driver, cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            device);
  const std::string arch =
      "--gpu-architecture=compute_" + std::to_string(major) + std::to_string(minor);
  const char* options[] = {arch.c_str()};

  nvrtcProgram program = nullptr;
  nvrtcResult result = nvrtc.nvrtcCreateProgram(&program, source, name, 0, nullptr, nullptr);
  if (result == NVRTC_SUCCESS) result = nvrtc.nvrtcCompileProgram(program, 1, options);
  if (result != NVRTC_SUCCESS) {
    size_t bytes = 0;
    std::string log;
    if (program != nullptr && nvrtc.nvrtcGetProgramLogSize(program, &bytes) == NVRTC_SUCCESS) {
      log.resize(bytes);
      nvrtc.nvrtcGetProgramLog(program, log.data());
    }
    throw std::runtime_error(std::string("NVRTC: ") + nvrtc.nvrtcGetErrorString(result) + ": " +
                             FirstLine(log.c_str()));
  }
  size_t bytes = 0;
  std::string image;
  result = nvrtc.nvrtcGetPTXSize(program, &bytes);
  image.resize(bytes);
  if (result == NVRTC_SUCCESS) result = nvrtc.nvrtcGetPTX(program, image.data());
  nvrtc.nvrtcDestroyProgram(&program);
  if (result != NVRTC_SUCCESS) {
    throw std::runtime_error(std::string("NVRTC: ") + nvrtc.nvrtcGetErrorString(result));
  }
  return image;
}

}  // namespace sluice::testing
