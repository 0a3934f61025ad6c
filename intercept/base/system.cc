// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/base/system.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace sluice {

void* MapMemory(size_t bytes) {
  const ErrnoKeeper keeper;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void UnmapMemory(void* memory, size_t bytes) {
  const ErrnoKeeper keeper;
  if (memory != nullptr) munmap(memory, bytes);
}

uint64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

void SleepNs(uint64_t ns) {
  const ErrnoKeeper keeper;
  const timespec span{static_cast<time_t>(ns / 1'000'000'000u),
                      static_cast<long>(ns % 1'000'000'000u)};  // NOLINT(google-runtime-int)
  syscall(SYS_nanosleep, &span, nullptr);
}

uint64_t ThreadNumber() {
  static constinit std::atomic<uint64_t> last{0};
  static constinit thread_local uint64_t own = 0;
  if (own == 0) own = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return own;
}

}  // namespace sluice
