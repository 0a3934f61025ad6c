// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "common/cuda/abi.h"

/// Declarations of the driver's entry points and one function type per entry point:
/// `PFN_cuMemAlloc_v2` is the type of a pointer to `cuMemAlloc_v2`.
#define CU_FUNCTION(symbol, base, version, per_thread, params, names) \
  extern "C" CUresult symbol params;                                  \
  using PFN_##symbol = CUresult(*) params;
#include "common/cuda/functions.def"
#undef CU_FUNCTION
