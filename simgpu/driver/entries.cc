// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/driver/entries.h"

#include "common/cuda/abi.h"
#include "simgpu/driver/interference.h"

// What programs call: each exported function first asks whether somebody wants this call to be late
// or to fail, then goes to the function of the same name inside (see common/cuda/driver_api.h).
// driver_api.h is not included here: it would give the inner functions these names.
using sluice::simgpu::Interfere;

extern "C" {
#define CU_FUNCTION(symbol, base, version, per_thread, params, names) \
  CUresult simgpu_##symbol params;                                    \
  CUresult symbol params;                                             \
  CUresult symbol params {                                            \
    const CUresult failure = Interfere(#symbol);                      \
    return failure == CUDA_SUCCESS ? simgpu_##symbol names : failure; \
  }
#include "common/cuda/functions.def"
#undef CU_FUNCTION

// Declared for their addresses only; untyped_api.cc defines them.
#define CU_UNTYPED(symbol, base, version, per_thread) CUresult symbol(void);
#include "common/cuda/exports.def"
#undef CU_UNTYPED
}

namespace sluice::simgpu {
namespace {

/// Linked with -Bsymbolic: these are this library's functions even when a preloaded library exports
/// the same names.
const Entry kEntries[] = {
#define CU_EXPORT(symbol, base, version, per_thread) \
  {#symbol, #base, version, per_thread != 0, reinterpret_cast<void*>(&symbol)},
#include "common/cuda/exports.def"
#undef CU_EXPORT
};

}  // namespace

std::span<const Entry> Entries() { return kEntries; }

}  // namespace sluice::simgpu
