// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>

#include "common/cuda/abi.h"

namespace sluice::simgpu {

class Mappings;
class GpuState;

/// Makes faults of device code harmless to the executor. Installed once, for the calling thread.
void InstallFaultHandler(Mappings* mappings, GpuState* gpu, int32_t client_pid);

/// Runs `body(argument)` so that a fault in it ends it: CUDA_ERROR_ILLEGAL_ADDRESS for an address
/// that is not accessible, CUDA_ERROR_LAUNCH_FAILED for any other trap. Accesses to units of the
/// pool that the client does not hold are counted under `name` and let through. Nothing between
/// here and the access may own resources: they would leak.
CUresult RunGuarded(const char* name, void (*body)(void*), void* argument);

}  // namespace sluice::simgpu
