// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// The kernels of kernels.cc in CUDA C, for a driver that the tests did not bring themselves:
// tests/gpu/run compiles them with the NVRTC of the machine and passes the image in
// SLUICE_CONTRACT_IMAGE. Without REAL_GPU they are for a simulated GPU: there a pause
// and the length of a kernel come from the machine file.

typedef unsigned int u32;
typedef unsigned long long u64;

extern "C" __global__ void fill(u32* target, u32 value, u64 count) {
  for (u64 i = 0; i < count; ++i) target[i] = value;
}

extern "C" __global__ void append(u32* log, u32 value) { log[++log[0]] = value; }

extern "C" __global__ void wait_flag(const u64* flag) {
  while (*(const volatile u64*)flag == 0) {
#ifdef REAL_GPU
    __nanosleep(20000);
#endif
  }
}

struct Values {
  u32 v[64];
};
extern "C" __global__ void big(u32* target, Values values) {
  for (int i = 0; i < 64; ++i) target[i] = values.v[i];
}

extern "C" __global__ void shape(u32* target) {
  target[0] = gridDim.x;
  target[1] = gridDim.y;
  target[2] = gridDim.z;
  target[3] = blockDim.x;
  target[4] = blockDim.y;
  target[5] = blockDim.z;
#ifdef REAL_GPU
  asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(target[6]));
#else
  target[6] = 0;
#endif
}

extern "C" __global__ void nothing() {}

/// 20 ms, as the machine file of the contract tests says.
extern "C" __global__ void slow() {
#ifdef REAL_GPU
  u64 begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < 20000000);
#endif
}

extern "C" __global__ void trap() {
#ifdef REAL_GPU
  asm volatile("trap;");
#else
  __builtin_trap();
#endif
}

/// Adds one to *counter until *stop is not 0 or `limit` is reached, and shows each number: what a
/// kernel of a dying process still writes.
extern "C" __global__ void count_up(u64* counter, const u64* stop, u64 limit) {
  for (u64 i = 1; i <= limit && *(const volatile u64*)stop == 0; ++i) {
    *(volatile u64*)counter = i;
#ifdef REAL_GPU
    __threadfence_system();
    __nanosleep(1000);
#endif
  }
}

/// As long as its second argument says: on the simulated GPU by a declaration.
extern "C" __global__ void lasts(u32 unused, u64 ns) {
#ifdef REAL_GPU
  u64 begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < ns);
#endif
}
#ifndef REAL_GPU
SIMGPU_DURATION_ARGUMENT(lasts, 1);
#endif
