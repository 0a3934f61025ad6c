// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors

// What an operator of a trace does in sluice-replay: it lasts about as long as it is told, checks the
// blocks that the operator reads and fills those that it writes. Each name of an operator gets a kernel of
// that name behind this text (plan.h): a program's iteration is known by the order of its kernels.

typedef unsigned int u32;
typedef unsigned long long u64;

// As tools/replay/launch_table.h lays them out.
struct BlockWork {
  u64 address;
  u64 words;  // of 4 bytes, at least 1
  u32 check;  // seed of the pattern that must be there; 0: look at nothing
  u32 write;  // seed of the pattern to leave; 0: leave it
  u32 block;
  u32 pad;
};

struct Counts {
  u64 checked;          // words
  u64 wrong;            // of them
  u64 first_operation;  // with a wrong word, counted from 1 over all iterations; 0: none
  u64 first_block;      // of that operation
};

enum { kWordsPerThread = 16 };

static __device__ __forceinline__ u32 Word(u32 seed, u64 place) {
  u32 value = seed ^ (u32)place * 0x9e3779b9u ^ (u32)(place >> 32) * 0x85ebca6bu;
  value = (value ^ (value >> 16)) * 0x7feb352du;
  value = (value ^ (value >> 15)) * 0x846ca68bu;
  return value ^ (value >> 16);
}

#ifdef SIMGPU_DURATION_ARGUMENT
#define REPLAY_DURATION(kernel) SIMGPU_DURATION_ARGUMENT(kernel, 0);
static __device__ __forceinline__ void Last(u64 ns) {}
#else
#define REPLAY_DURATION(kernel)
static __device__ __forceinline__ void Last(u64 ns) {
  u64 begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < ns);
}
#endif

// Row 0 of the grid passes the time, in one thread; row i + 1 works on blocks[i], of which one word in
// `stride` is looked at, and the last one.
static __device__ __noinline__ void Operate(u64 ns, const BlockWork* blocks, Counts* counts,
                                            u64 operation, u64 stride) {
  if (blockIdx.y == 0) {
    if (blockIdx.x == 0 && threadIdx.x == 0) Last(ns);
    return;
  }
  const BlockWork work = blocks[blockIdx.y - 1];
  u32* const words = (u32*)work.address;
  const u64 last = work.words - 1;
  const u64 places = (last + stride - 1) / stride + 1;
  // Neighbouring threads take neighbouring words, and a tile stays in a cache of the host, too.
  const u64 tile = (u64)blockDim.x * kWordsPerThread;
  u64 wrong = 0;
  u64 checked = 0;
  for (u64 begin = blockIdx.x * tile; begin < places; begin += gridDim.x * tile) {
    const u64 end = begin + tile < places ? begin + tile : places;
    checked += end - begin;
    for (u64 i = begin + threadIdx.x; i < end; i += blockDim.x) {
      const u64 at = i * stride < last ? i * stride : last;
      if (work.check != 0 && words[at] != Word(work.check, at)) ++wrong;
      if (work.write != 0) words[at] = Word(work.write, at);
    }
  }
  if (work.check == 0) return;
  if (threadIdx.x == 0 && checked != 0) atomicAdd(&counts->checked, checked);
  if (wrong == 0) return;
  atomicAdd(&counts->wrong, wrong);
  if (atomicCAS(&counts->first_operation, 0ull, operation) == 0) counts->first_block = work.block;
}

#define REPLAY_KERNEL(kernel)                                                              \
  extern "C" __global__ void kernel(u64 ns, const BlockWork* blocks, Counts* counts, \
                                    u64 operation, u64 stride) {                           \
    Operate(ns, blocks, counts, operation, stride);                                        \
  }                                                                                        \
  REPLAY_DURATION(kernel)
