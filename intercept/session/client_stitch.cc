// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/session/client.h"

namespace sluice {

// A block of units that lie apart: mapped side by side in a window (docs/adr/0031). request_lock_
// is held, so there is one at a time.
//
// Who holds the bytes: the job, all the while; in between they are in no place of the arena, where
// nobody finds them. What proves that the GPU is done with them: what was freed in them is reached,
// or was freed on the stream that the block is for. Who waits: nobody; the driver maps beside
// kernels that run.

// Units that the daemon has to give before the block can be stitched.
uint32_t Client::Missing(const Want& want) {
  const LockGuard guard(state_lock_);
  return MissingFor(want, streams_.Still(want.slot, want.stream));
}

// The same; state_lock_ is held.
uint32_t Client::MissingFor(const Want& want, uint32_t slot) {
  const uint32_t usable = arena_.UsableUnits(slot, session_.marks());
  const uint32_t units = arena_.UnitsToStitch(want.granules, slot);
  return usable < units ? units - usable : 0;
}

bool Client::Stitch(const Want& want, CUdeviceptr* out, bool* mark_due) {
  // While a window is mapped another thread may take what is free beside it. The window is a free
  // run then, too short for the block, and its units go into the next one.
  for (int attempt = 0; attempt < 16; ++attempt) {
    Arena::Window window{};
    uint32_t slot = kNoSlot;
    if (!BeginWindow(want, &slot, &window)) return false;
    const bool mapped = window.mapped || MapWindow(window);
    const LockGuard guard(state_lock_);
    // The slot is still the stream's (MovesFor).
    const uint64_t mark = streams_.NextMark(slot);
    if (!mapped) {
      arena_.CancelWindow(window, slot, mark);
      return false;
    }
    const uint32_t id = arena_.FinishWindow(window, want.granules, slot, mark, session_.marks());
    PublishHeld();
    if (id == kNoBlock && arena_.MovesFor(slot)) return false;  // the host has no memory
    if (id == kNoBlock) continue;
    Enter(want, id, slot, out, mark_due);
    return true;
  }
  return false;
}

// Where there is no room for a window, the GPU is waited for and those that show nothing go.
bool Client::BeginWindow(const Want& want, uint32_t* slot, Arena::Window* window) {
  for (bool again = true;; again = false) {
    {
      const LockGuard guard(state_lock_);
      *slot = streams_.Still(want.slot, want.stream);
      if (MissingFor(want, *slot) > 0) return false;
      const uint64_t mark = streams_.NextMark(*slot);
      if (arena_.BeginWindow(want.granules, *slot, mark, window)) return true;
      // Only these, whose work the wait covers: others may become vacant meanwhile.
      arena_.NoteVacant();
    }
    if (!again || !Drain()) return false;
    UnmapVacantWindows();
  }
}

bool Client::MapWindow(const Arena::Window& window) {
  const RelaxedCapture relaxed(*driver_);
  ArenaMap& map = session_.arena();
  bool mapped = true;
  for (uint32_t unit = window.start; mapped && unit < window.start + window.units; ++unit) {
    mapped = map.MapShown(*driver_, unit, arena_.Shown(unit));
  }
  if (mapped && map.AllowWindow(*driver_, session_.device(), window.start, window.units))
    return true;
  map.UnmapWindow(*driver_, window.start, window.units);  // nobody was told of these addresses
  return false;
}

// The GPU has been waited for.
void Client::UnmapVacantWindows() {
  while (true) {
    Arena::Window window{};
    {
      const LockGuard guard(state_lock_);
      if (!arena_.TakeVacant(&window)) return;
    }
    session_.arena().UnmapWindow(*driver_, window.start, window.units);
  }
}

}  // namespace sluice
