// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

// CUDA C as the simulated GPU's host compiler sees it. Included before the user's source; uses no
// system header, because a real runtime compiler has none either: what compiles here must not lean
// on the host's. The tokens __global__ and __shared__ stay as they are here and are rewritten later
// (simgpu/nvrtc/rewrite.cc), when the preprocessor is done with the source.

#define __device__ __attribute__((visibility("default")))
#define __constant__ __attribute__((visibility("default")))
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __grid_constant__
#define __managed__
#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 0

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;

#include "simgpu/cuda_vectors.h"

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
};

// Plain statics whose address nobody takes: the host compiler keeps them in registers inside the
// loop over threadIdx.x and can vectorise it. One thread runs a module's kernels at a time.
static uint3 threadIdx;
static uint3 blockIdx;
static dim3 blockDim;
static dim3 gridDim;
static constexpr int warpSize = 32;

// What `extern __shared__ T name[]` names; as large as on the largest real device.
alignas(128) static unsigned char simgpu_dynamic_shared[227 << 10];

// See simgpu/module/kernel_abi.h.
#define SIMGPU_DURATION_ARGUMENT(kernel, place) \
  __attribute__((visibility("default"))) unsigned simgpu_duration_##kernel = place

#include "simgpu/cuda_atomics.h"
#include "simgpu/cuda_math.h"
#include "simgpu/fibers.h"

extern "C" int printf(const char* format, ...);

// The compiler's name stands here so that it becomes part of the preprocessed text, which is the
// cache key. The scanner starts after the last line.
static constexpr const char* simgpu_compiler = __VERSION__;
struct simgpu_user_source_begins;
