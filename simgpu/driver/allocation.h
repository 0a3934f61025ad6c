// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>

#include "simgpu/driver/driver.h"

namespace sluice::simgpu {

/// What lies behind a device pointer of this process.
struct Allocation {
  Family family = Family::kSync;
  uint64_t base = 0;
  uint64_t bytes = 0;
  // The addresses around it: of a mapping those that were reserved, of all else the same.
  uint64_t range_base = 0;
  uint64_t range_bytes = 0;
  uint64_t serial = 0;         // no other allocation of its family has it
  int device = 0;              // ordinal of the GPU that it lies on, or was pinned for
  Context* context = nullptr;  // null: not of one context (mapped handles, foreign memory)
  CUmemoryPool pool = nullptr;
  std::optional<ForeignMemory::Kind> foreign;
  std::optional<HostMemory::Info> host;  // pinned or managed memory
  bool on_device() const { return !host || host->kind == HostMemory::Kind::kManaged; }
};

/// In `first` or whatever other context it was made. Takes the locks of driver and contexts, never
/// two at a time: a context's may be held by a launch that waits.
std::optional<Allocation> FindAllocation(Driver* driver, Context* first, uint64_t address);

/// Waits for all work of a context.
CUresult FinishAll(Context* context);

/// cuMemFree and cuMemFreeAsync on managed memory and on what came from elsewhere.
CUresult FreeShared(Context* context, const Allocation& allocation);

}  // namespace sluice::simgpu
