// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <pthread.h>

namespace sluice::simgpu {

/// A mutex in memory that processes share, any of which may be killed at any moment, inside it or
/// while it waits for it. What it protects is then as the dead one left it. (The kernel knows an
/// owner by its thread number. One that is killed while it waits for an owner that has the same
/// number in another PID namespace is taken for that one.)
///
/// A robust mutex of the C library alone is not enough. It wakes one waiter when it is released,
/// and the kernel wakes the next one if that one was killed before it took the mutex, but only if
/// nobody else took it in between: whoever did does not know that there are others, and wakes
/// nobody. So a waiter here looks again by itself.
class SharedMutex {
 public:
  SharedMutex() = delete;  // lies in shared memory: see Initialise
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  /// Once, before any other process maps it.
  void Initialise();
  /// The names of a standard mutex, for std::lock_guard.
  void lock();
  void unlock() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_;
};

}  // namespace sluice::simgpu
