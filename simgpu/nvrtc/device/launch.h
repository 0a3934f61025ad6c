// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

// How a kernel's function becomes the entry that the executor calls. Appended after the user's
// source; one SIMGPU_EXPORT line per kernel follows.

#include "simgpu/kernel_abi.h"

namespace simgpu {

template <class T>
struct Argument {
  alignas(T) unsigned char bytes[sizeof(T)];
  explicit Argument(const void* from) { __builtin_memcpy(bytes, from, sizeof(T)); }
  const T& value() const { return *reinterpret_cast<const T*>(bytes); }
};

template <unsigned... I>
struct Indices {};
template <unsigned N, unsigned... I>
struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {};
template <unsigned... I>
struct MakeIndices<0, I...> {
  using Type = Indices<I...>;
};

/// The loop that the host compiler is to vectorise: the kernel's body is inlined into it. Arguments
/// come by value, so that no store of the kernel can change them.
template <auto kKernel, class... P>
__attribute__((noinline)) void RunRow(unsigned width, P... arguments) {
  for (unsigned x = 0; x < width; ++x) {
    threadIdx.x = x;
    kKernel(arguments...);
  }
}

template <class F>
struct Signature;
template <class... P>
struct Signature<void (*)(P...)> {
  static constexpr uint32_t kCount = sizeof...(P);
  static constexpr uint32_t kSizes[sizeof...(P) + 1] = {sizeof(P)..., 0};
  using Pack = typename MakeIndices<sizeof...(P)>::Type;

  template <auto kKernel, unsigned... I>
  static void Rows(const void* const* params, Indices<I...>) {
    for (unsigned z = 0; z < blockDim.z; ++z) {
      for (unsigned y = 0; y < blockDim.y; ++y) {
        threadIdx.y = y;
        threadIdx.z = z;
        RunRow<kKernel, P...>(blockDim.x, Argument<P>(params[I]).value()...);
      }
    }
  }
  template <auto kKernel, unsigned... I>
  static void Thread(const void* const* params, Indices<I...>) {
    kKernel(Argument<P>(params[I]).value()...);
  }
};

static const void* const* launch_params;

template <auto kKernel>
void FiberBody() {
  using Sig = Signature<decltype(kKernel)>;
  Sig::template Thread<kKernel>(launch_params, typename Sig::Pack{});
}

template <auto kKernel, bool kBarriers>
void Run(const void* const* params, const unsigned grid[3], const unsigned block[3],
         unsigned shared_bytes) {
  using Sig = Signature<decltype(kKernel)>;
  gridDim = dim3(grid[0], grid[1], grid[2]);
  blockDim = dim3(block[0], block[1], block[2]);
  const unsigned threads = block[0] * block[1] * block[2];
  if (shared_bytes > sizeof simgpu_dynamic_shared) Die("simgpu: too much shared memory\n");
  if constexpr (kBarriers) {
    if (threads > kMaxThreads) Die("simgpu: more than 1024 threads in a block\n");
    launch_params = params;
    PrepareFibers(threads, &FiberBody<kKernel>);
  }
  for (unsigned z = 0; z < grid[2]; ++z) {
    for (unsigned y = 0; y < grid[1]; ++y) {
      for (unsigned x = 0; x < grid[0]; ++x) {
        blockIdx = uint3{x, y, z};
        if constexpr (kBarriers) {
          RunBlock();
        } else {
          Sig::template Rows<kKernel>(params, typename Sig::Pack{});
        }
      }
    }
  }
}

}  // namespace simgpu

#define SIMGPU_EXPORT(name, barriers, ...)                                               \
  extern "C" {                                                                           \
  __attribute__((visibility("default"))) extern const SimgpuKernel simgpu_kernel_##name; \
  }                                                                                      \
  const SimgpuKernel simgpu_kernel_##name = {                                            \
      SIMGPU_KERNEL_ABI, simgpu::Signature<decltype(&__VA_ARGS__)>::kCount,              \
      simgpu::Signature<decltype(&__VA_ARGS__)>::kSizes, &simgpu::Run<&__VA_ARGS__, barriers>};
