// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "common/cuda/driver_api.h"

// A libcuda.so.1 that does nothing but let itself be found: every function of functions.def answers
// CUDA_ERROR_UNKNOWN, cuGetProcAddress works. With FAKE_GPA=private it hands out addresses that
// differ from the exported ones, as a driver may.

namespace {

struct Row {
  const char* base;
  int version;
  bool per_thread;
  void* exported;
  void* inner;
};

extern const Row kRows[];
extern const size_t kRowCount;

CUresult Find(const char* symbol, void** pfn, int version, cuuint64_t flags) {
  const bool inner = getenv("FAKE_GPA") != nullptr && strcmp(getenv("FAKE_GPA"), "private") == 0;
  const Row* best = nullptr;
  for (const bool per_thread : {true, false}) {
    if (per_thread && (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) == 0) continue;
    for (size_t i = 0; i < kRowCount; ++i) {
      const Row& row = kRows[i];
      if (row.per_thread == per_thread && strcmp(row.base, symbol) == 0 && row.version <= version &&
          (best == nullptr || (row.version > best->version && best->per_thread == per_thread))) {
        best = &row;
      }
    }
  }
  // What a driver of a later release may have.
  if (strcmp(symbol, "cuMemAllocOfTomorrow") == 0) {
    *pfn = reinterpret_cast<void*>(&Find);
    return CUDA_SUCCESS;
  }
  *pfn = best == nullptr ? nullptr : inner ? best->inner : best->exported;
  return CUDA_SUCCESS;
}

// The inner copies: same answers, other addresses.
#define CU_FUNCTION(symbol, base, version, per_thread, params, names) \
  template <int>                                                      \
  CUresult Inner_##symbol params {                                    \
    return symbol names;                                              \
  }
#include "common/cuda/functions.def"
#undef CU_FUNCTION

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// Attributes and unused parameters: all but the two lookups are the same.
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define cuGetProcAddress cuGetProcAddress_unused
#define cuGetProcAddress_v2 cuGetProcAddress_v2_unused
#define CU_FUNCTION(symbol, base, version, per_thread, params, names) \
  EXPORT CUresult symbol params { return CUDA_ERROR_UNKNOWN; }
#include "common/cuda/functions.def"
#undef CU_FUNCTION
#undef cuGetProcAddress
#undef cuGetProcAddress_v2

EXPORT CUresult cuGetProcAddress(const char* symbol, void** pfn, int version, cuuint64_t flags) {
  return Find(symbol, pfn, version, flags);
}
EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult* status) {
  if (status != nullptr) *status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;  // passed through?
  return Find(symbol, pfn, version, flags);
}
// A variant that functions.def does not know, newer than a hooked one.
EXPORT CUresult cuCtxSynchronize_v9(CUcontext) { return CUDA_ERROR_UNKNOWN; }

namespace {

const Row kRows[] = {
#define CU_FUNCTION(symbol, base, version, per_thread, params, names)   \
  {#base, version, (per_thread) != 0, reinterpret_cast<void*>(&symbol), \
   reinterpret_cast<void*>(&Inner_##symbol<0>)},
#include "common/cuda/functions.def"
#undef CU_FUNCTION
    {"cuCtxSynchronize", 13010, false, reinterpret_cast<void*>(&cuCtxSynchronize_v9),
     reinterpret_cast<void*>(&cuCtxSynchronize_v9)},
};
const size_t kRowCount = sizeof(kRows) / sizeof(kRows[0]);

}  // namespace
