// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <array>
#include <cstdint>

namespace sluice::simgpu {

/// The ways in which a program gets memory. New ones go to the end: they are indices in the state
/// page.
enum class Family : uint32_t {
  kContext,   // what a context itself costs
  kSync,      // cuMemAlloc, cuMemAllocPitch
  kAsync,     // stream-ordered, from pools
  kVmm,       // cuMemCreate
  kArray,     // arrays and mipmapped arrays
  kManaged,   // cuMemAllocManaged
  kGraph,     // allocation nodes
  kIpc,       // another process's memory: opened or imported
  kExternal,  // cuImportExternalMemory
  kCount,
};

inline constexpr uint32_t kFamilies = static_cast<uint32_t>(Family::kCount);
inline constexpr std::array<const char*, kFamilies> kFamilyNames = {
    "context", "sync", "async", "vmm", "array", "managed", "graph", "ipc", "external"};

/// Who pays for bytes, and for what: an entry of the state page's process table.
struct Payer {
  uint32_t process = 0;
  Family family = Family::kSync;
};

}  // namespace sluice::simgpu
