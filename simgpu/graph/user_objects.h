// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "common/cuda/abi.h"
#include "simgpu/driver/slab.h"

struct CUuserObject_st {
  static constexpr uint32_t kMagic = 0x55534f31;
  std::atomic<uint32_t> magic{0};
  uint64_t references = 0;
  void* pointer = nullptr;
  CUhostFn destroy = nullptr;
};

namespace sluice::simgpu {

/// References to things of the program that graphs keep alive. The caller locks, and runs the
/// destructors of what nobody refers to any more, which Release only collects.
class UserObjects {
 public:
  using Counts = std::map<CUuserObject, unsigned>;
  struct Destructor {
    CUhostFn function;
    void* pointer;
  };

  CUuserObject Create(void* pointer, CUhostFn destroy, unsigned references) {
    CUuserObject object = objects_.New();
    object->references = references;
    object->pointer = pointer;
    object->destroy = destroy;
    return object;
  }
  void Retain(CUuserObject object, unsigned count) { object->references += count; }
  void Release(CUuserObject object, unsigned count) {
    if (object->references > count) {
      object->references -= count;
      return;
    }
    due_.push_back({object->destroy, object->pointer});
    objects_.Delete(object);
  }
  void Retain(const Counts& counts) {
    for (const auto& [object, count] : counts) Retain(object, count);
  }
  void Release(const Counts& counts) {
    for (const auto& [object, count] : counts) Release(object, count);
  }
  std::vector<Destructor> TakeDue() { return std::exchange(due_, {}); }

 private:
  Slab<CUuserObject_st> objects_;
  std::vector<Destructor> due_;
};

}  // namespace sluice::simgpu
