// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/base/line.h"
#include "intercept/session/client.h"

namespace sluice {

// Physical memory behind parts of sparse arrays. It is the driver's as long as a part shows it,
// also when its last handle was released, and parts overlap and are replaced without a word about
// whose they were. So memory that was put behind an array stays charged until that array is
// destroyed, or its context: longer than it might, never shorter.

namespace {

uint64_t ArrayOf(const CUarrayMapInfo& part) {
  return part.resourceType == CU_RESOURCE_TYPE_ARRAY ? KeyOf(part.resource.array)
                                                     : KeyOf(part.resource.mipmap);
}

bool Maps(const CUarrayMapInfo& part) { return part.memOperationType == CU_MEM_OPERATION_TYPE_MAP; }

}  // namespace

// What is leased from the pool is no handle that a driver could put there.
CUresult Client::CheckTiles(const CUarrayMapInfo* parts, unsigned count) {
  for (unsigned i = 0; parts != nullptr && i < count; ++i) {
    if (!Maps(parts[i]) || !IsLeasedHandle(parts[i].memHandle.memHandle)) continue;
    Line()
        .Text(
            "physical memory leased from the pool cannot be mapped to a sparse array: make it for "
            "that (CU_MEM_CREATE_USAGE_TILE_POOL), and it is charged outside the pool")
        .PrintOnce();
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

void Client::KeepTiles(const CUarrayMapInfo* parts, unsigned count) {
  const uint64_t context = KeyOf(CurrentContext());
  const LockGuard guard(outside_lock_);
  for (unsigned i = 0; i < count; ++i) {
    if (!Maps(parts[i])) continue;
    const Holding* named = holdings_.Find(Thing::kPhysical, parts[i].memHandle.memHandle);
    if (named == nullptr) continue;
    const uint64_t memory = named->link;
    const uint64_t array = ArrayOf(parts[i]);
    bool known = false;
    holdings_.ForEach([&](const Holding& holding) {
      known = known ||
              (holding.thing == Thing::kTile && holding.link == memory && holding.high == array);
    });
    if (known) continue;
    Holding tile{};
    tile.thing = Thing::kTile;
    tile.key = ++memories_made_;
    tile.link = memory;
    tile.high = array;
    tile.context = context;
    // Without memory for the entry nobody ends this mapping: charged until the process ends.
    if (Holding* behind = holdings_.Find(Thing::kMemory, memory)) ++behind->mapped;
    if (holdings_.Insert(tile)) ++tiles_;
  }
}

void Client::NameTiles(uint64_t from, uint64_t to) {
  const LockGuard guard(outside_lock_);
  if (tiles_ == 0) return;
  holdings_.ForEach([&](Holding& holding) {
    if (holding.thing == Thing::kTile && holding.high == from) holding.high = to;
  });
}

// Those of an array, or of a context; the other one is 0.
void Client::DropTiles(uint64_t array, uint64_t context) {
  while (true) {
    Holding gone{};
    {
      const LockGuard guard(outside_lock_);
      if (tiles_ == 0) return;
      holdings_.ForEach([&](const Holding& holding) {
        if (holding.thing != Thing::kTile) return;
        if (array != 0 ? holding.high == array : holding.context == context) gone = holding;
      });
      if (gone.thing == Thing{}) return;
      static_cast<void>(holdings_.Take(Thing::kTile, gone.key, &gone));
      --tiles_;
    }
    DropMemory(gone.link, true);
  }
}

}  // namespace sluice
