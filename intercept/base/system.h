// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

/// The few services of the kernel that the library needs, without allocation and without symbols
/// newer than glibc 2.17. None of them is a cancellation point.
namespace sluice {

/// A hook must not change the errno of the program around it.
class ErrnoKeeper {
 public:
  ErrnoKeeper() : saved_(errno) {}
  ~ErrnoKeeper() { errno = saved_; }
  ErrnoKeeper(const ErrnoKeeper&) = delete;
  ErrnoKeeper& operator=(const ErrnoKeeper&) = delete;

 private:
  int saved_;
};

/// Zeroed private memory, or null. The library never calls malloc: a preloaded allocator may call
/// back into code that waits for us.
void* MapMemory(size_t bytes);
void UnmapMemory(void* memory, size_t bytes);

uint64_t NowNs();  // monotonic
void SleepNs(uint64_t ns);
/// Of this thread: unlike those of the kernel it never comes again.
uint64_t ThreadNumber();

inline void CpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Waits for something the GPU will do: spins, then sleeps 50 us at a time, because a GPU's store
/// can wake nobody.
class Backoff {
 public:
  void Pause() {
    if (spins_ < kSpins) {
      ++spins_;
      CpuRelax();
    } else {
      SleepNs(50'000);
    }
  }

 private:
  static constexpr uint32_t kSpins = 2000;
  uint32_t spins_ = 0;
};

}  // namespace sluice
