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
  uint64_t serial = 0;         // no other allocation of its family has it
  Context* context = nullptr;  // null: not of one context (mapped handles, foreign memory)
  CUmemoryPool pool = nullptr;
  std::optional<ForeignMemory::Kind> foreign;
};

/// In `first` or whatever other context it was made. Takes the locks of driver and contexts, never
/// two at a time: a context's may be held by a launch that waits.
std::optional<Allocation> FindAllocation(Driver* driver, Context* first, uint64_t address);

/// cuMemFree and cuMemFreeAsync on memory that came from elsewhere.
CUresult FreeForeign(Context* context, const Allocation& allocation);

}  // namespace sluice::simgpu
