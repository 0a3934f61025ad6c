// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/outside/holdings.h"

namespace sluice {

void Holdings::Place(const Holding& holding) {
  uint32_t at = Home(holding.thing, holding.key);
  while (slots_[at].thing != Thing{}) at = (at + 1) & (capacity_ - 1);
  slots_[at] = holding;
}

bool Holdings::Grow() {
  const uint32_t grown = capacity_ == 0 ? 256 : capacity_ * 2;
  PagedArray<Holding> fresh;
  if (!fresh.Reserve(grown)) return false;
  PagedArray<Holding> old = slots_;
  const uint32_t old_capacity = capacity_;
  slots_ = fresh;
  capacity_ = grown;
  for (uint32_t i = 0; i < old_capacity; ++i) {
    if (old[i].thing != Thing{}) Place(old[i]);
  }
  old.Free();
  return true;
}

bool Holdings::Insert(const Holding& holding) {
  if (Holding* known = Find(holding.thing, holding.key)) {
    *known = holding;
    return true;
  }
  if (size_ * 2 >= capacity_ && !Grow()) return false;
  Place(holding);
  ++size_;
  return true;
}

Holding* Holdings::Find(Thing thing, uint64_t key) {
  if (size_ == 0) return nullptr;
  for (uint32_t at = Home(thing, key); slots_[at].thing != Thing{};
       at = (at + 1) & (capacity_ - 1)) {
    if (slots_[at].thing == thing && slots_[at].key == key) return &slots_[at];
  }
  return nullptr;
}

bool Holdings::Take(Thing thing, uint64_t key, Holding* out) {
  Holding* found = Find(thing, key);
  if (found == nullptr) return false;
  *out = *found;
  const uint32_t mask = capacity_ - 1;
  auto hole = static_cast<uint32_t>(found - &slots_[0]);
  // Entries behind the hole move up unless that would put them before their home.
  for (uint32_t at = (hole + 1) & mask; slots_[at].thing != Thing{}; at = (at + 1) & mask) {
    const uint32_t home = Home(slots_[at].thing, slots_[at].key);
    if (((at - home) & mask) >= ((at - hole) & mask)) {
      slots_[hole] = slots_[at];
      hole = at;
    }
  }
  slots_[hole] = Holding{};
  --size_;
  return true;
}

Holding* Holdings::FindMapping(uint64_t address) {
  Holding* found = nullptr;
  ForEach([&](Holding& holding) {
    if (holding.thing == Thing::kMapping && address - holding.key < holding.bytes) {
      found = &holding;
    }
  });
  return found;
}

void Holdings::FreeMemory() {
  slots_.Free();
  capacity_ = size_ = 0;
}

}  // namespace sluice
