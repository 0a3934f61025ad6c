// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// Kernels for the contract tests, written by hand against simgpu/module/kernel_abi.h so that these
// tests need no compiler at run time.
#include <time.h>

#include <cstdint>

#include "simgpu/module/kernel_abi.h"

namespace {

template <typename T>
T Param(const void* const* params, int i) {
  return *static_cast<const T*>(params[i]);
}

/// fill(uint32_t* target, uint32_t value, uint64_t count)
void Fill(const void* const* params, const unsigned*, const unsigned*, unsigned) {
  auto* target = Param<uint32_t*>(params, 0);
  for (uint64_t i = 0; i < Param<uint64_t>(params, 2); ++i) target[i] = Param<uint32_t>(params, 1);
}
constexpr uint32_t kFillSizes[] = {8, 4, 8};

/// append(uint32_t* log, uint32_t value): log[0] counts, log[log[0]] is the last value
void Append(const void* const* params, const unsigned*, const unsigned*, unsigned) {
  auto* log = Param<uint32_t*>(params, 0);
  log[++log[0]] = Param<uint32_t>(params, 1);
}
constexpr uint32_t kAppendSizes[] = {8, 4};

/// wait_flag(const uint64_t* flag): until *flag is not 0. Models a kernel that runs for long.
void WaitFlag(const void* const* params, const unsigned*, const unsigned*, unsigned) {
  const auto* flag = Param<const uint64_t*>(params, 0);
  const timespec pause{0, 50'000};
  while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) == 0) nanosleep(&pause, nullptr);
}
constexpr uint32_t kWaitFlagSizes[] = {8};

/// big(uint32_t* target, struct { uint32_t v[64]; } values): copies all values
struct Values {
  uint32_t v[64];
};
void Big(const void* const* params, const unsigned*, const unsigned*, unsigned) {
  auto* target = Param<uint32_t*>(params, 0);
  const auto* values = static_cast<const Values*>(params[1]);
  for (int i = 0; i < 64; ++i) target[i] = values->v[i];
}
constexpr uint32_t kBigSizes[] = {8, sizeof(Values)};

/// shape(uint32_t* target): grid, block and shared bytes as the kernel sees them
void Shape(const void* const* params, const unsigned* grid, const unsigned* block,
           unsigned shared_bytes) {
  auto* target = Param<uint32_t*>(params, 0);
  for (int i = 0; i < 3; ++i) target[i] = grid[i];
  for (int i = 0; i < 3; ++i) target[3 + i] = block[i];
  target[6] = shared_bytes;
}

void Nothing(const void* const*, const unsigned*, const unsigned*, unsigned) {}

/// count_up(uint64_t* counter, const uint64_t* stop, uint64_t limit): shows each number up to it
void CountUp(const void* const* params, const unsigned*, const unsigned*, unsigned) {
  auto* counter = Param<uint64_t*>(params, 0);
  const auto* stop = Param<const uint64_t*>(params, 1);
  const timespec pause{0, 1'000};
  for (uint64_t i = 1; i <= Param<uint64_t>(params, 2); ++i) {
    if (__atomic_load_n(stop, __ATOMIC_ACQUIRE) != 0) return;
    __atomic_store_n(counter, i, __ATOMIC_RELEASE);
    nanosleep(&pause, nullptr);
  }
}
constexpr uint32_t kCountUpSizes[] = {8, 8, 8};

constexpr uint32_t kLastsSizes[] = {4, 8};

/// trap(): an instruction that faults
void Trap(const void* const*, const unsigned*, const unsigned*, unsigned) { __builtin_trap(); }

}  // namespace

extern "C" {
extern const SimgpuKernel simgpu_kernel_fill, simgpu_kernel_append, simgpu_kernel_wait_flag,
    simgpu_kernel_big, simgpu_kernel_shape, simgpu_kernel_nothing, simgpu_kernel_slow,
    simgpu_kernel_trap, simgpu_kernel_count_up, simgpu_kernel_lasts, simgpu_kernel_lasts_narrow,
    simgpu_kernel_lasts_beyond, simgpu_kernel_other_abi;
extern const uint32_t simgpu_duration_lasts, simgpu_duration_lasts_narrow,
    simgpu_duration_lasts_beyond;
const SimgpuKernel simgpu_kernel_fill = {SIMGPU_KERNEL_ABI, 3, kFillSizes, Fill};
const SimgpuKernel simgpu_kernel_append = {SIMGPU_KERNEL_ABI, 2, kAppendSizes, Append};
const SimgpuKernel simgpu_kernel_wait_flag = {SIMGPU_KERNEL_ABI, 1, kWaitFlagSizes, WaitFlag};
const SimgpuKernel simgpu_kernel_big = {SIMGPU_KERNEL_ABI, 2, kBigSizes, Big};
const SimgpuKernel simgpu_kernel_shape = {SIMGPU_KERNEL_ABI, 1, kWaitFlagSizes, Shape};
const SimgpuKernel simgpu_kernel_nothing = {SIMGPU_KERNEL_ABI, 0, nullptr, Nothing};
const SimgpuKernel simgpu_kernel_slow = {SIMGPU_KERNEL_ABI, 0, nullptr, Nothing};
const SimgpuKernel simgpu_kernel_trap = {SIMGPU_KERNEL_ABI, 0, nullptr, Trap};
const SimgpuKernel simgpu_kernel_count_up = {SIMGPU_KERNEL_ABI, 3, kCountUpSizes, CountUp};
// lasts(uint32_t unused, uint64_t ns): and two that name a parameter of 4 bytes, or none
const SimgpuKernel simgpu_kernel_lasts = {SIMGPU_KERNEL_ABI, 2, kLastsSizes, Nothing};
const SimgpuKernel simgpu_kernel_lasts_narrow = {SIMGPU_KERNEL_ABI, 2, kLastsSizes, Nothing};
const SimgpuKernel simgpu_kernel_lasts_beyond = {SIMGPU_KERNEL_ABI, 2, kLastsSizes, Nothing};
const uint32_t simgpu_duration_lasts = 1, simgpu_duration_lasts_narrow = 0,
               simgpu_duration_lasts_beyond = 2;
const SimgpuKernel simgpu_kernel_other_abi = {SIMGPU_KERNEL_ABI + 1, 0, nullptr, Nothing};
}
