// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/cuda/client_driver.h"

#include <dlfcn.h>

#include <stdexcept>

namespace sluice::cuda {
namespace {

constexpr int kCudaVersion = 12000;

void* OpenFirst(std::initializer_list<const char*> names) {
  std::string tried;
  for (const char* name : names) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    tried += std::string(tried.empty() ? "" : "; ") + dlerror();
  }
  throw std::runtime_error("cannot open the library: " + tried);
}

template <class F>
void Find(void* library, const char* name, F* function) {
  *function = reinterpret_cast<F>(dlsym(library, name));
  if (*function == nullptr) throw std::runtime_error(std::string("no function ") + name);
}

/// The functions of NVRTC, by their names.
struct Nvrtc {
#define SLUICE_CLIENT_MEMBER(result, name, params) PFN_##name name = nullptr;
  SLUICE_NVRTC_FUNCTIONS(SLUICE_CLIENT_MEMBER)
#undef SLUICE_CLIENT_MEMBER

  Nvrtc() {
    void* library = OpenFirst({"libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so"});
#define SLUICE_CLIENT_FIND(result, function, params) Find(library, #function, &this->function);
    SLUICE_NVRTC_FUNCTIONS(SLUICE_CLIENT_FIND)
#undef SLUICE_CLIENT_FIND
  }
  void Check(nvrtcResult result, const char* call) const {
    if (result == NVRTC_SUCCESS) return;
    throw std::runtime_error(std::string(call) + " failed: " + nvrtcGetErrorString(result));
  }
};

}  // namespace

ClientDriver ClientDriver::Load() {
  void* library = OpenFirst({"libcuda.so.1"});
  PFN_cuGetProcAddress_v2 get = nullptr;
  Find(library, "cuGetProcAddress_v2", &get);
  ClientDriver driver;
  const auto find = [&](const char* name) {
    void* function = nullptr;
    CUdriverProcAddressQueryResult status{};
    const CUresult result =
        get(name, &function, kCudaVersion, CU_GET_PROC_ADDRESS_DEFAULT, &status);
    if (result != CUDA_SUCCESS || function == nullptr) {
      throw std::runtime_error(std::string("the driver has no ") + name);
    }
    return function;
  };
#define SLUICE_CLIENT_FIND(member, symbol) \
  driver.member = reinterpret_cast<PFN_##symbol>(find(#member));
  SLUICE_CLIENT_FUNCTIONS(SLUICE_CLIENT_FIND)
#undef SLUICE_CLIENT_FIND
  return driver;
}

void ClientDriver::Check(CUresult result, const char* call) const {
  if (result == CUDA_SUCCESS) return;
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    throw OutOfMemory(std::string("out of memory in ") + call);
  const char* name = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "unknown error";
  throw std::runtime_error(std::string(call) + " failed: " + name);
}

std::string CompileKernels(const char* source, const char* name, int arch) {
  const Nvrtc nvrtc;
  nvrtcProgram program = nullptr;
  nvrtc.Check(nvrtc.nvrtcCreateProgram(&program, source, name, 0, nullptr, nullptr),
              "nvrtcCreateProgram");
  const std::string architecture = "--gpu-architecture=sm_" + std::to_string(arch);
  // No contraction: every machine that rounds as IEEE 754 says gives the same bits.
  const char* options[] = {architecture.c_str(), "--fmad=false", "--std=c++17"};
  const nvrtcResult compiled = nvrtc.nvrtcCompileProgram(program, 3, options);
  if (compiled != NVRTC_SUCCESS) {
    size_t bytes = 0;
    std::string log;
    if (nvrtc.nvrtcGetProgramLogSize(program, &bytes) == NVRTC_SUCCESS && bytes > 0) {
      log.resize(bytes);
      if (nvrtc.nvrtcGetProgramLog(program, log.data()) != NVRTC_SUCCESS) log.clear();
    }
    throw std::runtime_error(std::string("cannot compile the kernels: ") +
                             nvrtc.nvrtcGetErrorString(compiled) + "\n" + log.c_str());
  }
  size_t bytes = 0;
  nvrtc.Check(nvrtc.nvrtcGetCUBINSize(program, &bytes), "nvrtcGetCUBINSize");
  std::string image(bytes, '\0');
  nvrtc.Check(nvrtc.nvrtcGetCUBIN(program, image.data()), "nvrtcGetCUBIN");
  nvrtc.Check(nvrtc.nvrtcDestroyProgram(&program), "nvrtcDestroyProgram");
  return image;
}

}  // namespace sluice::cuda
