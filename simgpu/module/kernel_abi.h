// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

/// What a compiled module of the simulated GPU looks like, agreed between the compiler (NVRTC's
/// stand-in), the driver and the executor. Header-only and plain C, so that generated code can use
/// it.
///
/// A *module image* (what a program hands to cuModuleLoadData) is ASCII text ending with a NUL:
///
///     // simgpu-module 1
///     <base64 (RFC 4648, line breaks allowed) of an ELF shared object>
///
/// For each kernel NAME the object exports the data symbol `simgpu_kernel_NAME` of this type.
/// `NAME` is what the program passes to cuModuleGetFunction (the mangled name where the program
/// uses that). A global variable NAME is exported as the plain data symbol NAME.
#ifdef __cplusplus
extern "C" {
#endif

struct SimgpuKernel {
  /// SIMGPU_KERNEL_ABI
  uint32_t abi;
  uint32_t param_count;
  /// `param_count` sizes in bytes; lives in the object. May be null when there are no parameters.
  const uint32_t* param_sizes;
  /// Runs the whole grid. `params[i]` points to a copy of argument i. Called by one thread at a
  /// time. It may be left by a longjmp when it touches an address that is not mapped, so it must
  /// not hold anything across such an access that the next call could not do without.
  void (*run)(const void* const* params, const unsigned grid[3], const unsigned block[3],
              unsigned shared_bytes);
};

#ifdef __cplusplus
}
#endif

#define SIMGPU_MODULE_MAGIC "// simgpu-module 1\n"
#define SIMGPU_KERNEL_ABI 1u
#define SIMGPU_KERNEL_PREFIX "simgpu_kernel_"

/// A kernel whose launches say how long they last exports this data symbol too, a `uint32_t`: the
/// place, from 0, of the parameter that holds the duration in simulated nanoseconds (8 bytes,
/// unsigned). Other kernels last as long as the machine file says. In CUDA C it is written as
/// `SIMGPU_DURATION_ARGUMENT(NAME, PLACE);`, a macro that no real compiler defines.
#define SIMGPU_DURATION_PREFIX "simgpu_duration_"
