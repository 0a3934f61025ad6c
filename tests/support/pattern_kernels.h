// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>

#include "tests/support/driver.h"

namespace sluice::testing {

/// What the checking kernels found, on the GPU: sums over all words they saw, so that the order in
/// which blocks run does not matter.
struct PatternCounts {
  uint64_t mismatches = 0;
  uint64_t digest = 0;
  uint64_t words = 0;
};

/// Kernels that fill a block with a pattern that depends on a seed and each word's place, and that
/// compare every word of a block with it. The GPU itself thereby verifies each byte that a program
/// owns; nothing is copied to the host but the counts.
class PatternKernels {
 public:
  /// Compiles with the machine's NVRTC and loads the module into the current context. Throws
  /// std::runtime_error with the compiler's message.
  explicit PatternKernels(Driver& driver);

  /// Each word is turned over `rounds` times more than needed: makes the kernels slower on a real
  /// GPU.
  void set_rounds(uint32_t rounds) { rounds_ = rounds; }

  void Fill(CUdeviceptr block, uint64_t bytes, uint64_t seed, CUstream stream);
  /// Compares with the pattern of `seed`.
  void Check(CUdeviceptr block, uint64_t bytes, uint64_t seed, CUstream stream);
  /// Compares with the pattern of `old_seed` and writes that of `new_seed`.
  void Touch(CUdeviceptr block, uint64_t bytes, uint64_t old_seed, uint64_t new_seed,
             CUstream stream);
  /// The same, by a kernel that has a name as NCCL's have.
  void TouchAsNccl(CUdeviceptr block, uint64_t bytes, uint64_t old_seed, uint64_t new_seed,
                   CUstream stream);
  /// Waits for the context and reads the counts.
  PatternCounts Read();

  static constexpr uint64_t kWordBytes = 8;
  static constexpr uint64_t kCountBytes = 512;

 private:
  void Launch(CUfunction function, CUdeviceptr block, uint64_t bytes, uint64_t old_seed,
              uint64_t new_seed, CUstream stream);

  Driver& driver_;
  CUmodule module_ = nullptr;
  CUfunction fill_ = nullptr;
  CUfunction check_ = nullptr;
  CUfunction touch_ = nullptr;
  CUfunction collective_ = nullptr;
  CUdeviceptr counts_ = 0;
  uint32_t rounds_ = 0;
};

/// The 64-bit mixing function of the pattern (the finaliser of MurmurHash3).
constexpr uint64_t Mix(uint64_t value) {
  value = (value ^ (value >> 33)) * 0xff51afd7ed558ccdu;
  value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53u;
  return value ^ (value >> 33);
}

}  // namespace sluice::testing
