// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <cstdint>

#include "common/cuda/abi.h"
#include "common/unique_fd.h"
#include "simgpu/sharing/gpu_folders.h"

/// A memory pool of the process. Its memory is one heap per context that allocates from it
/// (Context::pool_heap), because stream order is known within a context only.
struct CUmemPoolHandle_st {
  static constexpr uint32_t kMagic = 0x504f4f31;
  /// Contexts that may ever use one exportable pool.
  static constexpr uint64_t kWindows = 64;

  std::atomic<uint32_t> magic{0};
  // Set when it is made and never changed.
  CUmemPoolProps props{};
  bool is_default = false;
  bool imported = false;
  sluice::UniqueFd file;  // what is exported: windows of heaps one behind the other

  std::atomic<uint8_t> access[sluice::simgpu::kMaxGpus]{};  // CUmemAccess_flags by ordinal
  std::atomic<uint64_t> release_threshold{0};
  std::atomic<int> reuse[3]{};  // in the order of their attributes
  std::atomic<uint64_t> windows{0};
  std::atomic<bool> destroyed{false};
  /// The program's handle and every heap; who takes the last one away deletes the pool.
  std::atomic<int> references{0};
};
