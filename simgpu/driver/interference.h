// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "common/cuda/abi.h"

namespace sluice::simgpu {

/// Delays this call of an exported function if SLUICE_SIMGPU_INJECT or `simgpu-ctl inject` says so.
/// Returns the error that the call has to answer, CUDA_SUCCESS if it goes on.
CUresult Interfere(const char* function);

}  // namespace sluice::simgpu
