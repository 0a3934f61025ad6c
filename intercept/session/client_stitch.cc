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
uint32_t Client::Missing(const Want& want, uint32_t units) {
  const LockGuard guard(state_lock_);
  const uint32_t usable =
      arena_.UsableUnits(streams_.Still(want.slot, want.stream), session_.marks());
  return usable < units ? units - usable : 0;
}

bool Client::Stitch(const Want& want, uint32_t units, CUdeviceptr* out, bool* mark_due) {
  Arena::Window window{};
  uint32_t slot = kNoSlot;
  for (int attempt = 0;; ++attempt) {
    {
      const LockGuard guard(state_lock_);
      slot = streams_.Still(want.slot, want.stream);
      if (arena_.UsableUnits(slot, session_.marks()) < units) return false;
      if (arena_.BeginWindow(units, slot, streams_.NextMark(slot), &window)) break;
      // Only these, whose work the wait covers: others may become vacant meanwhile.
      arena_.NoteVacant();
    }
    if (attempt > 0 || !Drain()) return false;
    UnmapVacantWindows();
  }
  const bool mapped = window.mapped || MapWindow(window);
  const LockGuard guard(state_lock_);
  // The slot is still the stream's (MovesFor).
  const uint32_t id = mapped ? arena_.FinishWindow(window, slot) : kNoBlock;
  if (id == kNoBlock) {
    window.mapped = mapped;
    arena_.CancelWindow(window, slot, streams_.NextMark(slot));
    return false;
  }
  PublishHeld();
  Enter(want, id, slot, out, mark_due);
  return true;
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
