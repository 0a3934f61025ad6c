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

// What this stream may use of this unit, up to its upper bound or from its lower one. Nothing of
// one that is wholly free: that may go into a window itself.
uint32_t Arena::RoomIn(uint32_t unit, bool at_top, uint32_t slot) const {
  if (unit >= units_ || !Leased(unit) || live_in_unit_[unit] == 0) return 0;
  const uint32_t from = unit << unit_shift_;
  const uint32_t to = from + unit_granules();
  uint32_t room = 0;
  for (uint32_t id = first_in_unit_[unit]; id != kNoBlock && blocks_[id].start < to;
       id = blocks_[id].next) {
    const Block& block = blocks_[id];
    const bool usable = UsableBy(block, slot);
    if (!usable && !at_top) break;
    const uint32_t begin = block.start > from ? block.start : from;
    const uint32_t end = block.end() < to ? block.end() : to;
    room = usable ? room + end - begin : 0;
  }
  return room;
}

// So many it takes beside that room.
uint32_t Arena::UnitsBeside(uint32_t granules, uint32_t room) const {
  const uint32_t rest = granules > room ? granules - room : 1;
  return (rest + unit_granules() - 1) >> unit_shift_;
}

// Whether it shows units that are all at hand: it costs no call of the driver then.
bool Arena::ShowsUsable(const Window& window, uint32_t slot) const {
  for (uint32_t unit = window.start; unit < window.start + window.units; ++unit) {
    const uint32_t shown = Shown(unit);
    if (Leased(unit) || !Leased(shown) || live_in_unit_[shown] != 0 || !MayUse(shown, slot))
      return false;
  }
  return true;
}

// The place of fewest units: a window that is mapped already, with what is free on both sides of
// it; else one in a gap between others, at the side of it where more is free. Where nothing is,
// from that end of all which the job fills from.
bool Arena::FindPlaceFor(uint32_t granules, uint32_t slot, Window* window) const {
  const uint32_t whole = UnitsBeside(granules, 0);
  const auto better = [&](uint32_t units) { return window->units == 0 || units < window->units; };
  *window = {0, 0, false, false};
  for (uint32_t i = 0; i < windows_used_; ++i) {
    const Window& known = windows_[i];
    const uint32_t room =
        RoomIn(known.start - 1, true, slot) + RoomIn(known.start + known.units, false, slot);
    if (known.units < UnitsBeside(granules, room) || known.units > whole) continue;
    if (better(known.units) && ShowsUsable(known, slot)) *window = known;
  }
  if (windows_used_ == kMaxWindows) return window->units > 0;
  for (uint32_t i = 0; i <= windows_used_; ++i) {
    const uint32_t at = high_end_ ? windows_used_ - i : i;
    const uint32_t from = at == 0 ? pool_units_ : windows_[at - 1].start + windows_[at - 1].units;
    const uint32_t to = at == windows_used_ ? units_ : windows_[at].start;
    if (from == to) continue;
    const uint32_t below = RoomIn(from - 1, true, slot);
    const uint32_t above = RoomIn(to, false, slot);
    const auto consider = [&](uint32_t units, bool at_top) {
      if (units > to - from || !better(units)) return;
      *window = {at_top ? to - units : from, units, false, false};
    };
    consider(UnitsBeside(granules, high_end_ ? above : below), high_end_);
    consider(UnitsBeside(granules, high_end_ ? below : above), !high_end_);
  }
  return window->units > 0;
}

uint32_t Arena::UnitsToStitch(uint32_t granules, uint32_t slot) const {
  Window window{};
  return FindPlaceFor(granules, slot, &window) ? window.units : UnitsBeside(granules, 0);
}

void Arena::AddWindow(const Window& window) {
  uint32_t at = windows_used_++;
  for (; at > 0 && windows_[at - 1].start > window.start; --at) windows_[at] = windows_[at - 1];
  windows_[at] = window;
}

bool Arena::BeginWindow(uint32_t granules, uint32_t slot, uint64_t mark, Window* window) {
  MergeRecent();
  if (!FindPlaceFor(granules, slot, window)) return false;
  const uint32_t units = window->units;
  if (!window->mapped) {
    AddWindow(*window);
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

// A block of whole units stays one: begun in what is free beside the window, it would save none,
// and touch one more.
uint32_t Arena::FinishWindow(const Window& window, uint32_t granules, uint32_t slot, uint64_t mark,
                             const protocol::MarkPage& marks) {
  if (!Reserve() || !Reserve() || !Reserve()) return kNoBlock;  // held, and of no use any more
  moving_units_ -= window.units;
  AddUnits({window.start, window.units});
  NoteMapped(window.start);
  const uint32_t id = TakeAt(window.start << unit_shift_, window.units << unit_shift_);
  if (granules == window.units << unit_shift_) {
    blocks_[id].slot = static_cast<uint16_t>(slot);
    return id;
  }
  FreeUnder(id, slot, mark);
  return Allocate(granules, slot, marks);
}

// Nothing new was done with it: it waits for what was freed where it lies, if on this stream.
void Arena::FreeUnder(uint32_t id, uint32_t slot, uint64_t mark) {
  if (slot < kNoSlot) {
    FreeOnStream(id, slot, mark);
  } else {
    FreeSynced(id);
  }
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
    FreeUnder(TakeAt(pooled << unit_shift_, unit_granules()), slot, mark);
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
