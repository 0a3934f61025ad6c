// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/support/driver.h"

#include <dlfcn.h>
#include <signal.h>

namespace sluice::testing {
namespace {

void* Open() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) throw std::runtime_error(::dlerror());
  return library;
}

/// One name by the given route; null where there is none.
class Lookup {
 public:
  explicit Lookup(LookupRoute route) : route_(route), library_(Open()) {
    if (route == LookupRoute::kProcAddressV2) Find("cuGetProcAddress_v2", v2_);
    if (route == LookupRoute::kProcAddressV1) Find("cuGetProcAddress", v1_);
  }

  void* Get(const char* symbol, const char* base, int version, int per_thread) const {
    void* found = nullptr;
    const cuuint64_t flags = per_thread != 0 ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                             : CU_GET_PROC_ADDRESS_DEFAULT;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    switch (route_) {
      case LookupRoute::kDlsym:
        return ::dlsym(library_, symbol);
      case LookupRoute::kProcAddressV1:
        return v1_(base, &found, version, flags) == CUDA_SUCCESS ? found : nullptr;
      case LookupRoute::kProcAddressV2:
        return v2_(base, &found, version, flags, &status) == CUDA_SUCCESS ? found : nullptr;
    }
    return nullptr;
  }

 private:
  template <typename Function>
  void Find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(::dlsym(library_, name));
    if (function == nullptr)
      throw std::runtime_error(std::string(name) + " is not in libcuda.so.1");
  }

  LookupRoute route_;
  void* library_;
  PFN_cuGetProcAddress v1_ = nullptr;
  PFN_cuGetProcAddress_v2 v2_ = nullptr;
};

}  // namespace

std::string ResultName(CUresult result) {
  switch (result) {
    case CUDA_SUCCESS:
      return "CUDA_SUCCESS";
    case CUDA_ERROR_INVALID_VALUE:
      return "CUDA_ERROR_INVALID_VALUE";
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "CUDA_ERROR_OUT_OF_MEMORY";
    case CUDA_ERROR_NOT_INITIALIZED:
      return "CUDA_ERROR_NOT_INITIALIZED";
    case CUDA_ERROR_NO_DEVICE:
      return "CUDA_ERROR_NO_DEVICE";
    case CUDA_ERROR_INVALID_CONTEXT:
      return "CUDA_ERROR_INVALID_CONTEXT";
    case CUDA_ERROR_NOT_FOUND:
      return "CUDA_ERROR_NOT_FOUND";
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      return "CUDA_ERROR_ILLEGAL_ADDRESS";
    case CUDA_ERROR_NOT_SUPPORTED:
      return "CUDA_ERROR_NOT_SUPPORTED";
    default:
      return "CUresult " + std::to_string(static_cast<int>(result));
  }
}

DriverError::DriverError(const std::string& call, CUresult result)
    : std::runtime_error(call + ": " + ResultName(result)), result_(result) {}

Driver::Driver(LookupRoute route) {
  const Lookup lookup(route);
  // The version asked for is the one that introduced the variant, as the CUDA runtime does it;
  // asking for today's would give newer variants with other parameters.
#define CU_FUNCTION(symbol, base, version, per_thread, params, names) \
  table_.symbol = reinterpret_cast<PFN_##symbol>(lookup.Get(#symbol, #base, version, per_thread));
#include "common/cuda/functions.def"
#undef CU_FUNCTION
}

void Driver::Count() {
  ++operations_;
  if (operations_ == kill_at_) ::raise(SIGKILL);
}

}  // namespace sluice::testing
