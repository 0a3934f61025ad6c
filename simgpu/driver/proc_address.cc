// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstring>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/driver.h"

// Declared for their addresses only; untyped_api.cc defines them.
extern "C" {
#define CU_UNTYPED(symbol, base, version, per_thread) CUresult symbol(void);
#include "common/cuda/exports.def"
#undef CU_UNTYPED
}

namespace {

struct Entry {
  const char* base;
  int version;
  bool per_thread;
  void* address;
};

/// Linked with -Bsymbolic: these are this library's functions even when a preloaded library exports
/// the same names.
const Entry kEntries[] = {
#define CU_EXPORT(symbol, base, version, per_thread) \
  {#base, version, per_thread != 0, reinterpret_cast<void*>(&symbol)},
#include "common/cuda/exports.def"
#undef CU_EXPORT
};

/// The newest variant that is not newer than `version`; a per-thread one where it is wanted and
/// exists.
const Entry* Find(const char* base, int version, bool per_thread, bool* too_new) {
  const Entry* best = nullptr;
  *too_new = false;
  for (const Entry& entry : kEntries) {
    if (strcmp(entry.base, base) != 0 || (entry.per_thread && !per_thread)) continue;
    if (entry.version > version) {
      *too_new = true;
      continue;
    }
    const bool preferred = best == nullptr || (entry.per_thread && !best->per_thread) ||
                           (entry.per_thread == best->per_thread && entry.version > best->version);
    if (preferred) best = &entry;
  }
  return best;
}

CUresult Lookup(const char* symbol, void** pfn, int version, cuuint64_t flags,
                CUdriverProcAddressQueryResult* status) {
  if (symbol == nullptr || pfn == nullptr || version > sluice::simgpu::kDriverVersion ||
      flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  bool too_new = false;
  const Entry* entry =
      Find(symbol, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &too_new);
  *pfn = entry == nullptr ? nullptr : entry->address;
  if (status != nullptr) {
    *status = entry != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
              : too_new        ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                               : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
  }
  return entry == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

}  // namespace

CUresult cuGetProcAddress(const char* symbol, void** pfn, int version, cuuint64_t flags) {
  return Lookup(symbol, pfn, version, flags, nullptr);
}

CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  return Lookup(symbol, pfn, version, flags, status);
}
