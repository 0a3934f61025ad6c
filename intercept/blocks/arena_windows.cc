// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/blocks/arena.h"

namespace sluice {

// Stitching (GMLake, ASPLOS 2024): units that lie apart are mapped side by side, behind the pool's
// own range. There they are units like others: what is allocated, freed, merged and given back in a
// window goes the same ways, and only a release says by which numbers the pool knows them. A unit
// is held at one place at a time, its own or a window. It is shown in a window as long as that is
// not taken apart (TakeVacant), also while somebody else has it, as its own place shows it.

// Whether all that was freed in a wholly free unit is done with, or was freed on this very stream.
bool Arena::MayUse(uint32_t unit, uint32_t slot) const {
  const uint32_t end = (unit + 1) << unit_shift_;
  for (uint32_t id = first_in_unit_[unit]; id != kNoBlock && blocks_[id].start < end;
       id = blocks_[id].next) {
    const Block& block = blocks_[id];
    if (block.kind == BlockKind::kUnsynced && (block.slot != slot || slot >= kNoSlot)) return false;
  }
  return true;
}

uint32_t Arena::UsableUnits(uint32_t slot, const protocol::MarkPage& marks) {
  MergeRecent();
  CollectReached(marks, slot);
  uint32_t usable = 0;
  for (uint32_t unit = NextFreeUnit(kNoBlock, true); unit != kNoBlock;
       unit = NextFreeUnit(unit, true)) {
    if (MayUse(unit, slot)) ++usable;
  }
  return usable;
}

bool Arena::IsVacant(const Window& window) const {
  for (uint32_t unit = window.start; unit < window.start + window.units; ++unit) {
    if (Leased(unit)) return false;
  }
  return true;
}

// One of this size that shows units which are all at hand: it costs no call of the driver.
bool Arena::FindWindow(uint32_t units, uint32_t slot, Window* window) {
  for (uint32_t i = 0; i < windows_used_; ++i) {
    const Window& known = windows_[i];
    if (known.units != units || !IsVacant(known)) continue;
    uint32_t unit = known.start;
    const auto at_hand = [&](uint32_t shown) {
      if (window_of_[shown] != 0 || !Leased(shown) || live_in_unit_[shown] != 0) return false;
      return MayUse(shown, slot);
    };
    while (unit < known.start + units && at_hand(Shown(unit))) ++unit;
    if (unit < known.start + units) continue;
    *window = known;
    return true;
  }
  return false;
}

// In the first gap between the others that is wide enough.
bool Arena::AddWindow(uint32_t units, Window* window) {
  if (windows_used_ == kMaxWindows) return false;
  uint32_t at = 0;
  uint32_t start = pool_units_;
  while (at < windows_used_ && windows_[at].start - start < units) {
    start = windows_[at].start + windows_[at].units;
    ++at;
  }
  if (units_ - start < units) return false;
  for (uint32_t i = windows_used_; i > at; --i) windows_[i] = windows_[i - 1];
  ++windows_used_;
  windows_[at] = *window = {start, units, false, false};
  return true;
}

bool Arena::BeginWindow(uint32_t units, uint32_t slot, uint64_t mark, Window* window) {
  MergeRecent();
  if (!FindWindow(units, slot, window)) {
    if (!AddWindow(units, window)) return false;
    // What lies farthest from the job's end would be given back first.
    uint32_t unit = NextFreeUnit(kNoBlock, high_end_);
    for (uint32_t i = 0; i < units; unit = NextFreeUnit(unit, high_end_)) {
      if (unit == kNoBlock) {  // fewer are usable than the caller counted
        DropWindow(window->start);
        return false;
      }
      // It may be shown in another window already; what is noted here is the pool's number.
      if (MayUse(unit, slot)) shown_[window->start - pool_units_ + i++] = PoolUnit(unit);
    }
  }
  moving_slot_ = slot;
  for (uint32_t i = 0; i < units; ++i) {
    const uint32_t pooled = Shown(window->start + i);
    const uint32_t at = window_of_[pooled] != 0 ? window_of_[pooled] : pooled;
    if (!Reserve()) {
      CancelWindow({window->start, i, window->mapped, false}, slot, mark);
      return false;
    }
    RemoveUnit(at);
    ++moving_units_;
    window_of_[pooled] = window->start + i;
  }
  return true;
}

uint32_t Arena::FinishWindow(const Window& window, uint32_t slot) {
  if (!Reserve() || !Reserve()) return kNoBlock;
  moving_units_ -= window.units;
  AddUnits({window.start, window.units});
  NoteMapped(window.start);
  const uint32_t id = TakeAt(window.start << unit_shift_, window.units << unit_shift_);
  blocks_[id].slot = static_cast<uint16_t>(slot);
  return id;
}

void Arena::CancelWindow(const Window& window, uint32_t slot, uint64_t mark) {
  if (window.mapped) {
    NoteMapped(window.start);
  } else {
    DropWindow(window.start);  // what it shows stays readable below
  }
  for (uint32_t unit = window.start; unit < window.start + window.units; ++unit) {
    const uint32_t pooled = Shown(unit);
    if (!Reserve() || !Reserve()) return;  // held, and of no use any more
    window_of_[pooled] = 0;
    --moving_units_;
    AddUnits({pooled, 1});
    const uint32_t id = TakeAt(pooled << unit_shift_, unit_granules());
    if (slot < kNoSlot) {
      FreeOnStream(id, slot, mark);
    } else {
      FreeSynced(id);
    }
  }
}

void Arena::NoteVacant() {
  for (uint32_t i = 0; i < windows_used_; ++i) windows_[i].vacant = IsVacant(windows_[i]);
}

bool Arena::TakeVacant(Window* window) {
  for (uint32_t i = 0; i < windows_used_; ++i) {
    if (!windows_[i].vacant || !IsVacant(windows_[i])) continue;
    *window = windows_[i];
    DropWindow(window->start);
    return true;
  }
  return false;
}

void Arena::NoteMapped(uint32_t start) {
  for (uint32_t i = 0; i < windows_used_; ++i) {
    if (windows_[i].start == start) windows_[i].mapped = true;
  }
}

void Arena::DropWindow(uint32_t start) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < windows_used_; ++i) {
    if (windows_[i].start != start) windows_[kept++] = windows_[i];
  }
  windows_used_ = kept;
}

}  // namespace sluice
