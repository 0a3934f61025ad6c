// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/hooks/churn_worker.h"

// Physical memory that is made of the pool's units: several handles and several mappings of one, in
// any order, and kernels that write through one mapping what another one shows.

namespace sluice::hooks {

using contract::ReadWrite;

void Worker::CreateLeased() {
  LeasedOf made{0, 1, 1 + Pick(kMostUnits), streams_[Pick(2)], {}, {}, false};
  made.exportable = shared_.leases_exportable && Pick(2) == 0;
  CUmemAllocationProp prop = DeviceMemory();
  if (!made.exportable) prop.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(0);
  if (!Served(cuMemCreate(&made.handle, made.units * kUnit, &prop, 0))) {
    // As caching allocators do: half of what there is goes back, and then once more.
    for (size_t left = blocks_.size() / 2; left > 0; --left) FreeBlock();
    if (!Served(cuMemCreate(&made.handle, made.units * kUnit, &prop, 0))) return;
  }
  tally_.live += made.units * kUnit;
  leased_.push_back(made);
  ++leased_made_;
}

void Worker::MapLeased() {
  LeasedOf& memory = leased_[Pick(leased_.size())];
  if (memory.handles == 0) return;
  for (size_t slot = 0; slot < kLeasedSlots; ++slot) {
    if (leased_mapped_[slot]) continue;
    const size_t bytes = memory.units * kUnit;
    const CUmemAccessDesc access = ReadWrite();
    // As the driver does it: as a whole, and from its start.
    EXPECT_EQ(cuMemMap(LeasedAt(slot), bytes + kUnit, 0, memory.handle, 0),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU(cuMemMap(LeasedAt(slot), bytes, 0, memory.handle, 0));
    EXPECT_CU(cuMemSetAccess(LeasedAt(slot), bytes, &access, 1));
    calls_ += 3;
    leased_mapped_[slot] = true;
    memory.slots.push_back(slot);
    return;
  }
}

/// Its stream is done with it.
uint32_t Worker::ReadWord(const LeasedOf& memory, size_t slot, size_t unit) {
  uint32_t word = 0;
  EXPECT_CU(cuStreamSynchronize(memory.stream));
  EXPECT_CU(cuMemcpyDtoH_v2(&word, LeasedAt(slot) + unit * kUnit, sizeof word));
  calls_ += 2;
  return word;
}

void Worker::UseLeased() {
  LeasedOf& memory = leased_[Pick(leased_.size())];
  if (memory.slots.empty()) return;
  const size_t unit = Pick(memory.units);
  if (memory.written[unit] != 0 && Pick(2) == 0) {
    const size_t other = memory.slots[Pick(memory.slots.size())];
    EXPECT_EQ(ReadWord(memory, other, unit), memory.written[unit]) << "somebody else wrote here";
    ++compared_;
  }
  CUdeviceptr at = LeasedAt(memory.slots[Pick(memory.slots.size())]) + unit * kUnit;
  uint32_t value = static_cast<uint32_t>(random_()) | 1;
  uint64_t count = 64;
  void* params[] = {&at, &value, &count};
  EXPECT_CU(cuLaunchKernel(shared_.fill, 1, 1, 1, 1, 1, 1, 0, memory.stream, params, nullptr));
  ++calls_;
  memory.written[unit] = value;
}

/// A program unmaps what its GPU is done with.
void Worker::UnmapSlot(LeasedOf* memory, size_t which) {
  const size_t slot = TakeAt(&memory->slots, which);
  EXPECT_CU(cuStreamSynchronize(memory->stream));
  if (memory->units > 1 && Pick(8) == 0) {
    EXPECT_EQ(cuMemUnmap(LeasedAt(slot), kUnit), CUDA_ERROR_INVALID_VALUE) << "a part of a mapping";
  }
  EXPECT_CU(cuMemUnmap(LeasedAt(slot), memory->units * kUnit));
  calls_ += 2;
  leased_mapped_[slot] = false;
}

/// With its last handle and its last mapping.
void Worker::ForgetGone() {
  for (size_t i = leased_.size(); i-- > 0;) {
    if (leased_[i].handles > 0 || !leased_[i].slots.empty()) continue;
    tally_.live -= leased_[i].units * kUnit;
    TakeAt(&leased_, i);
  }
}

void Worker::UnmapLeased() {
  LeasedOf& memory = leased_[Pick(leased_.size())];
  if (memory.slots.empty()) return;
  const size_t which = Pick(memory.slots.size());
  // The next mapping begins where this one ends.
  const size_t next = memory.slots[which] + 1;
  if (memory.units < kMostUnits || next >= kLeasedSlots || !leased_mapped_[next] || Pick(2) == 0) {
    UnmapSlot(&memory, which);
  } else {
    UnmapTwo(&memory, which);
  }
  ForgetGone();
}

/// By one call, whoever's they are.
void Worker::UnmapTwo(LeasedOf* memory, size_t which) {
  const size_t slot = TakeAt(&memory->slots, which);
  for (LeasedOf& other : leased_) {
    if (std::erase(other.slots, slot + 1) == 0) continue;
    EXPECT_CU(cuStreamSynchronize(memory->stream));
    EXPECT_CU(cuStreamSynchronize(other.stream));
    EXPECT_CU(cuMemUnmap(LeasedAt(slot), (memory->units + other.units) * kUnit));
    calls_ += 3;
  }
  leased_mapped_[slot] = leased_mapped_[slot + 1] = false;
}

void Worker::ReleaseLeased() {
  LeasedOf& memory = leased_[Pick(leased_.size())];
  if (memory.handles == 0) return;
  EXPECT_CU(cuMemRelease(memory.handle));
  ++calls_;
  --memory.handles;
  ForgetGone();
}

/// By an address somewhere in a mapping, also when all of its handles were released.
void Worker::RetainLeased() {
  LeasedOf& memory = leased_[Pick(leased_.size())];
  if (memory.slots.empty()) return;
  const CUdeviceptr at = LeasedAt(memory.slots[Pick(memory.slots.size())]);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_CU(cuMemRetainAllocationHandle(&handle,
                                        reinterpret_cast<void*>(at + Pick(memory.units * kUnit))));
  CUmemAllocationProp prop{};
  EXPECT_CU(cuMemGetAllocationPropertiesFromHandle(&prop, handle));
  EXPECT_EQ(prop.requestedHandleTypes, 0) << "it cannot be exported";
  calls_ += 2;
  memory.handle = handle;
  ++memory.handles;
}

/// What the pool lends has no handle for others, whatever it was made for.
void Worker::ExportLeased() {
  const LeasedOf& memory = leased_[Pick(leased_.size())];
  if (memory.handles == 0) return;
  int fd = -1;
  EXPECT_EQ(
      cuMemExportToShareableHandle(&fd, memory.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
      CUDA_ERROR_NOT_SUPPORTED);
  ++calls_;
  ++kept_;
}

void Worker::ClearLeased() {
  while (!leased_.empty()) {
    LeasedOf& memory = leased_.back();
    while (!memory.slots.empty()) UnmapSlot(&memory, 0);
    for (; memory.handles > 0; --memory.handles) EXPECT_CU(cuMemRelease(memory.handle));
    ForgetGone();
  }
}

}  // namespace sluice::hooks
