// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/shared_mutex.h"

#include <time.h>

#include <cerrno>

namespace sluice::simgpu {
namespace {

constexpr long kLookAgainNs = 10'000'000;  // NOLINT(google-runtime-int): timespec
constexpr long kSecondNs = 1'000'000'000;  // NOLINT(google-runtime-int)

/// By the clock that can be set: of the calls that wait with a bound, ThreadSanitizer knows the one
/// that wants it (pthread_mutex_timedlock, not pthread_mutex_clocklock). Set back, it makes the
/// look later by as much.
timespec Soon() {
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  time.tv_nsec += kLookAgainNs;
  if (time.tv_nsec >= kSecondNs) {
    time.tv_nsec -= kSecondNs;
    ++time.tv_sec;
  }
  return time;
}

}  // namespace

void SharedMutex::Initialise() {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&mutex_, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

void SharedMutex::lock() {
  int result = pthread_mutex_trylock(&mutex_);
  while (result == EBUSY || result == ETIMEDOUT) {
    const timespec until = Soon();
    result = pthread_mutex_timedlock(&mutex_, &until);
  }
  if (result == EOWNERDEAD) pthread_mutex_consistent(&mutex_);
}

}  // namespace sluice::simgpu
