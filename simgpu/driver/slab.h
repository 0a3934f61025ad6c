// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <vector>

namespace sluice::simgpu {

/// Memory of objects behind the driver's handles. It is used again, never returned to the heap, so
/// that a stale handle is recognised by its magic instead of crashing the program.
template <typename T>
class Slab {
 public:
  T* New() {
    const std::lock_guard lock(mutex_);
    T* object = nullptr;
    if (free_.empty()) {
      object = &all_.emplace_back();
    } else {
      object = free_.back();
      free_.pop_back();
    }
    object->magic.store(T::kMagic);
    return object;
  }
  void Delete(T* object) {
    const std::lock_guard lock(mutex_);
    object->magic.store(0);
    free_.push_back(object);
  }

 private:
  std::mutex mutex_;
  std::deque<T> all_;
  std::vector<T*> free_;
};

template <typename T>
bool IsLive(const T* object) {
  return object != nullptr && object->magic.load(std::memory_order_relaxed) == T::kMagic;
}

}  // namespace sluice::simgpu
