// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

// Barriers. A kernel that may reach one runs every thread of a block on a stack of its own (a
// fiber); a round lets each ready fiber run to its next barrier, in the order of thread numbers, so
// results do not depend on timing. Kernels without barriers never come here.
//
// A fault may leave a launch by longjmp from any fiber: nothing here outlives SimgpuPrepareFibers.

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

extern "C" void* mmap(void*, size_t, int, int, int, long);
extern "C" int mprotect(void*, size_t, int);
extern "C" long write(int, const void*, size_t);

namespace simgpu {

constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kGuardBytes = 4096;
constexpr unsigned kStackBytes = 128u << 10;  // with its guard
// Stacks at a power-of-two distance would all fall into the same sets of the cache.
constexpr unsigned kSkewBytes = 320;

[[noreturn]] static void Die(const char* line) {
  write(2, line, __builtin_strlen(line));
  __builtin_trap();
}

enum FiberState : unsigned char { kReady, kAtBlockBarrier, kAtWarpBarrier, kFinished };

struct Fiber {
  FiberState state;
  unsigned warp_mask;
  uint3 thread;
  unsigned long long exchange;  // what __shfl_*_sync shows to the other lanes
#if defined(__x86_64__)
  void* context;  // its stack pointer; the registers are on the stack
#else
  ucontext_t context;
#endif
};

static Fiber fibers[kMaxThreads];
static unsigned fiber_count;
static unsigned fiber_current;
static unsigned fiber_guarded;  // stacks whose guard page is set; survives launches
static char* fiber_stacks;
static void (*fiber_body)();
static unsigned fiber_votes, fiber_last_votes;  // __syncthreads_count and its relatives

#if defined(__x86_64__)
extern "C" __attribute__((visibility("hidden"))) void simgpu_switch(void** save, void* resume);
asm(R"(
  .pushsection .text
  .globl simgpu_switch
  .hidden simgpu_switch
  .type simgpu_switch,@function
simgpu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmp *%rcx
  .size simgpu_switch,.-simgpu_switch
  .popsection
)");
using Resume = void*;
static Resume fiber_scheduler;
static inline void Switch(Resume* save, Resume* resume) { simgpu_switch(save, *resume); }
#else
static ucontext_t fiber_scheduler;
static inline void Switch(ucontext_t* save, ucontext_t* resume) { swapcontext(save, resume); }
#endif

/// Leaves fiber `self` for the next one that is ready, else for RunBlock. Going straight to the
/// neighbour halves the number of switches.
static inline void Leave(unsigned self) {
  for (unsigned i = self + 1; i < fiber_count; ++i) {
    if (fibers[i].state != kReady) continue;
    fiber_current = i;
    threadIdx = fibers[i].thread;
    Switch(&fibers[self].context, &fibers[i].context);
    return;
  }
  Switch(&fibers[self].context, &fiber_scheduler);
}

/// A fiber serves one thread of one block after another.
static __attribute__((noinline)) void FiberMain() {
  for (;;) {
    fiber_body();
    fibers[fiber_current].state = kFinished;
    Leave(fiber_current);
  }
}

static __attribute__((noinline)) void PrepareFibers(unsigned count, void (*body)()) {
  if (fiber_stacks == nullptr) {
    // Read and write; private, anonymous, without reserve.
    void* mapped =
        mmap(nullptr, size_t{kMaxThreads} * kStackBytes, 1 | 2, 0x02 | 0x20 | 0x4000, -1, 0);
    if (mapped == reinterpret_cast<void*>(-1)) {
      Die("simgpu: no address space for the stacks of a block\n");
    }
    fiber_stacks = static_cast<char*>(mapped);
  }
  for (; fiber_guarded < count; ++fiber_guarded) {
    mprotect(fiber_stacks + size_t{fiber_guarded} * kStackBytes, kGuardBytes, 0);
  }
  fiber_count = count;
  fiber_body = body;
  fiber_votes = fiber_last_votes = 0;
  for (unsigned i = 0; i < count; ++i) {
    char* stack = fiber_stacks + size_t{i} * kStackBytes;
    char* top = stack + kStackBytes - 64 - (i % 32) * kSkewBytes;
#if defined(__x86_64__)
    // Six saved registers, the entry, and a zero where a caller would be: the stack pointer is 8
    // off a multiple of 16 when FiberMain starts, as after a call.
    void** frame = reinterpret_cast<void**>(top) - 8;
    for (unsigned k = 0; k < 6; ++k) frame[k] = nullptr;
    frame[6] = reinterpret_cast<void*>(&FiberMain);
    frame[7] = nullptr;
    fibers[i].context = frame;
#else
    getcontext(&fibers[i].context);
    fibers[i].context.uc_stack.ss_sp = stack + kGuardBytes;
    fibers[i].context.uc_stack.ss_size = static_cast<size_t>(top - stack) - kGuardBytes;
    fibers[i].context.uc_link = nullptr;
    makecontext(&fibers[i].context, &FiberMain, 0);
#endif
  }
}

/// Makes ready whoever waits at a barrier that all its threads have reached; false: nobody.
static inline bool ReleaseBarriers() {
  bool released = false;
  bool block_barrier = true;
  for (unsigned first = 0; first < fiber_count; first += 32) {
    const unsigned lanes = fiber_count - first < 32 ? fiber_count - first : 32;
    unsigned waiting = 0, finished = lanes == 32 ? 0u : ~0u << lanes;
    for (unsigned lane = 0; lane < lanes; ++lane) {
      const FiberState state = fibers[first + lane].state;
      if (state == kAtWarpBarrier) waiting |= 1u << lane;
      if (state == kFinished) finished |= 1u << lane;
    }
    if (waiting == 0) continue;
    block_barrier = false;
    for (unsigned lane = 0; lane < lanes; ++lane) {
      Fiber& fiber = fibers[first + lane];
      if ((waiting >> lane & 1) == 0) continue;
      if ((fiber.warp_mask & ~(waiting | finished)) != 0) continue;
      fiber.state = kReady;
      released = true;
    }
  }
  if (released || !block_barrier) return released;
  fiber_last_votes = fiber_votes;
  fiber_votes = 0;
  for (unsigned i = 0; i < fiber_count; ++i) {
    if (fibers[i].state != kAtBlockBarrier) continue;
    fibers[i].state = kReady;
    released = true;
  }
  return released;
}

/// Runs one block; `blockIdx` and `blockDim` are set.
static __attribute__((noinline)) void RunBlock() {
  unsigned i = 0;
  for (unsigned z = 0; z < blockDim.z; ++z) {
    for (unsigned y = 0; y < blockDim.y; ++y) {
      for (unsigned x = 0; x < blockDim.x; ++x, ++i) {
        fibers[i].state = kReady;
        fibers[i].thread = uint3{x, y, z};
      }
    }
  }
  do {
    for (i = 0; i < fiber_count; ++i) {
      if (fibers[i].state != kReady) continue;
      fiber_current = i;
      threadIdx = fibers[i].thread;
      Switch(&fiber_scheduler, &fibers[i].context);
    }
  } while (ReleaseBarriers());
  for (i = 0; i < fiber_count; ++i) {
    if (fibers[i].state == kFinished) continue;
    Die("simgpu: threads of a block wait at different barriers\n");
  }
}

static __attribute__((noinline)) void Wait(FiberState state, unsigned mask) {
  Fiber& self = fibers[fiber_current];
  self.state = state;
  self.warp_mask = mask;
  Leave(fiber_current);
}

static inline unsigned Lane() { return fiber_current % 32; }

/// Every named lane shows `value`; the result is what lane `from` showed. Two barriers, so that no
/// lane shows its next value before all have read this one.
template <class T>
static inline T Exchange(unsigned mask, T value, unsigned from) {
  static_assert(sizeof(T) <= sizeof(unsigned long long), "a shuffled value has at most 8 bytes");
  __builtin_memcpy(&fibers[fiber_current].exchange, &value, sizeof(T));
  Wait(kAtWarpBarrier, mask);
  T result;
  __builtin_memcpy(&result, &fibers[fiber_current - Lane() + from].exchange, sizeof(T));
  Wait(kAtWarpBarrier, mask);
  return result;
}

}  // namespace simgpu

static inline void __syncthreads() { simgpu::Wait(simgpu::kAtBlockBarrier, 0); }
static inline void __syncwarp(unsigned mask = 0xffffffffu) {
  simgpu::Wait(simgpu::kAtWarpBarrier, mask);
}
static inline int __syncthreads_count(int predicate) {
  simgpu::fiber_votes += predicate != 0;
  __syncthreads();
  return static_cast<int>(simgpu::fiber_last_votes);
}
static inline int __syncthreads_or(int predicate) { return __syncthreads_count(predicate) != 0; }
static inline int __syncthreads_and(int predicate) {
  return __syncthreads_count(predicate == 0) == 0;
}

template <class T>
static inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  const unsigned w = static_cast<unsigned>(width);
  return simgpu::Exchange(mask, value, simgpu::Lane() / w * w + static_cast<unsigned>(lane) % w);
}
template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned w = static_cast<unsigned>(width), lane = simgpu::Lane();
  return simgpu::Exchange(mask, value, lane % w + delta < w ? lane + delta : lane);
}
template <class T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned w = static_cast<unsigned>(width), lane = simgpu::Lane();
  return simgpu::Exchange(mask, value, lane % w >= delta ? lane - delta : lane);
}
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
  const unsigned w = static_cast<unsigned>(width), lane = simgpu::Lane();
  const unsigned other = lane ^ static_cast<unsigned>(lanes);
  return simgpu::Exchange(mask, value, other / w <= lane / w ? other : lane);
}
static inline unsigned __ballot_sync(unsigned mask, int predicate) {
  unsigned votes = 0;
  simgpu::fibers[simgpu::fiber_current].exchange = predicate != 0;
  simgpu::Wait(simgpu::kAtWarpBarrier, mask);
  const unsigned first = simgpu::fiber_current - simgpu::Lane();
  for (unsigned lane = 0; lane < 32 && first + lane < simgpu::fiber_count; ++lane) {
    if ((mask >> lane & 1) == 0 || simgpu::fibers[first + lane].state == simgpu::kFinished)
      continue;
    votes |= static_cast<unsigned>(simgpu::fibers[first + lane].exchange & 1) << lane;
  }
  simgpu::Wait(simgpu::kAtWarpBarrier, mask);
  return votes;
}
static inline int __any_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) != 0;
}
static inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, !predicate) == 0;
}
