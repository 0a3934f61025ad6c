// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <cstring>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/driver.h"
#include "simgpu/driver/entries.h"

using sluice::simgpu::Entries;
using sluice::simgpu::Entry;

namespace {

/// The newest variant that is not newer than `version`. Where per-thread ones are wanted and exist,
/// no other will do, not even for a version that had none yet.
const Entry* Find(const char* base, int version, bool per_thread, bool* too_new) {
  const auto has_per_thread = [base](const Entry& entry) {
    return entry.per_thread && strcmp(entry.base, base) == 0;
  };
  per_thread = per_thread && std::any_of(Entries().begin(), Entries().end(), has_per_thread);
  const Entry* best = nullptr;
  *too_new = false;
  for (const Entry& entry : Entries()) {
    if (strcmp(entry.base, base) != 0 || entry.per_thread != per_thread) continue;
    if (entry.version > version) {
      *too_new = true;
    } else if (best == nullptr || entry.version > best->version) {
      best = &entry;
    }
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
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuGetProcAddress(const char* symbol, void** pfn, int version, cuuint64_t flags) {
  const CUresult result = Lookup(symbol, pfn, version, flags, nullptr);
  return result == CUDA_SUCCESS && *pfn == nullptr ? CUDA_ERROR_NOT_FOUND : result;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  return Lookup(symbol, pfn, version, flags, status);
}
