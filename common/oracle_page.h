// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include <atomic>

/// Who holds which part of the pool, published by noded in test runs and enforced by the simulated
/// GPU: its executors protect every unit that their client does not hold and count each kernel that
/// touches one. A file in a tmpfs, named by the environment variable SLUICE_ORACLE in both
/// processes. Writer: noded alone, holder first, then the unit's epoch, then `changes` (release).
/// Readers: any.
namespace sluice {

inline constexpr uint64_t kOracleMagic = 0x4c4f5f4543494c53u;
inline constexpr uint32_t kOracleMaxHandles = 4096;
inline constexpr uint32_t kOracleMaxUnits = 65536;

struct OracleUnit {
  std::atomic<uint32_t> holder;  // process id of the holder; 0: nobody
  std::atomic<uint32_t> epoch;   // grows with every change of holder
};

struct OraclePage {
  uint64_t magic;
  uint64_t unit_bytes;
  uint64_t handle_bytes;
  uint32_t handle_count;
  uint32_t unit_count;
  std::atomic<uint64_t> changes;
  /// Inode of each handle's backing file, in pool order: how an executor finds out which pool bytes
  /// a mapping shows. Written once before `magic`.
  uint64_t handle_inode[kOracleMaxHandles];
  OracleUnit unit[kOracleMaxUnits];
};

}  // namespace sluice
