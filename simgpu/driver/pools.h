// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <algorithm>
#include <utility>

#include "simgpu/driver/driver.h"

/// What the files of the memory pool calls share.
namespace sluice::simgpu {

inline bool Usable(CUmemoryPool pool) { return IsLive(pool) && !pool->destroyed.load(); }

inline CUmemoryPool CurrentPool(const Device& device) {
  const std::lock_guard lock(Driver::Get()->mutex);
  return device.current_pool;
}

/// Calls `function(Heap&)` for the pool's part in each context, with that context's lock held.
template <typename F>
void ForEachHeap(Driver* driver, CUmemoryPool pool, F function) {
  std::vector<Context*> contexts;
  {
    const std::lock_guard lock(driver->mutex);
    for (const auto& context : driver->contexts) contexts.push_back(context.get());
  }
  for (Context* context : contexts) {
    const std::lock_guard lock(context->mutex);
    Heap* heap = context->FindPoolHeap(pool);
    if (heap != nullptr) function(*heap);
  }
}

}  // namespace sluice::simgpu
