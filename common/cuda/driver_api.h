// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "common/cuda/abi.h"

/// Declarations of the driver's entry points and one function type per entry point:
/// `PFN_cuMemAlloc_v2` is the type of a pointer to `cuMemAlloc_v2`.
/// Inside the simulated driver these names stand for the functions behind the exported ones
/// (simgpu/driver/entries.cc), so that its calls of itself are not calls of the program.
#ifdef SLUICE_INNER_ENTRIES
#define SLUICE_ENTRY_LABEL(symbol) __asm__("simgpu_" #symbol)
#else
#define SLUICE_ENTRY_LABEL(symbol)
#endif
#define CU_FUNCTION(symbol, base, version, per_thread, params, names) \
  extern "C" CUresult symbol params SLUICE_ENTRY_LABEL(symbol);       \
  using PFN_##symbol = CUresult(*) params;
#include "common/cuda/functions.def"
#undef CU_FUNCTION
