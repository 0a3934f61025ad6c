// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

// Atomic operations. All threads of a grid run on one thread of the host, one after another, so a
// plain read and write is atomic with respect to the others; another process's kernels never run
// meanwhile on the same memory by the rules of the simulated device.

#define SIMGPU_ATOMIC(name, type, next)                \
  static inline type name(type* address, type value) { \
    const type old = *address;                         \
    *address = (next);                                 \
    return old;                                        \
  }
#define SIMGPU_ATOMIC_ARITHMETIC(type)                           \
  SIMGPU_ATOMIC(atomicAdd, type, static_cast<type>(old + value)) \
  SIMGPU_ATOMIC(atomicExch, type, value)
#define SIMGPU_ATOMIC_INTEGER(type)                                       \
  SIMGPU_ATOMIC_ARITHMETIC(type)                                          \
  SIMGPU_ATOMIC(atomicMin, type, value < old ? value : old)               \
  SIMGPU_ATOMIC(atomicMax, type, value > old ? value : old)               \
  SIMGPU_ATOMIC(atomicAnd, type, old& value)                              \
  SIMGPU_ATOMIC(atomicOr, type, old | value)                              \
  SIMGPU_ATOMIC(atomicXor, type, old ^ value)                             \
  static inline type atomicCAS(type* address, type compare, type value) { \
    const type old = *address;                                            \
    if (old == compare) *address = value;                                 \
    return old;                                                           \
  }

SIMGPU_ATOMIC_ARITHMETIC(float)
SIMGPU_ATOMIC_ARITHMETIC(double)
SIMGPU_ATOMIC_INTEGER(int)
SIMGPU_ATOMIC_INTEGER(unsigned)
SIMGPU_ATOMIC_INTEGER(unsigned long long)
SIMGPU_ATOMIC(atomicSub, int, old - value)
SIMGPU_ATOMIC(atomicSub, unsigned, old - value)
SIMGPU_ATOMIC(atomicInc, unsigned, old >= value ? 0u : old + 1u)
SIMGPU_ATOMIC(atomicDec, unsigned, (old == 0u || old > value) ? value : old - 1u)

#undef SIMGPU_ATOMIC_INTEGER
#undef SIMGPU_ATOMIC_ARITHMETIC
#undef SIMGPU_ATOMIC

static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __threadfence_system() {}

template <class T>
static inline T __ldg(const T* address) {
  return *address;
}
