// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include "common/cuda/abi.h"
#include "intercept/base/lock.h"
#include "intercept/blocks/block.h"
#include "intercept/protocol/pages.h"

namespace sluice {

/// Which stream. By the driver's id: handles are reused after a destroy, and the handle of the
/// per-thread default stream means a different stream per thread. And by its context: two streams
/// that are taken for one are given each other's memory, so nothing rests on a driver whose ids are
/// what its header says, unique.
struct StreamName {
  uint64_t id = 0;
  CUcontext context = nullptr;
};

/// One stream of the application.
struct StreamSlot {
  bool active;
  bool ending;   // its context is just ending: it is not there, unless the driver refuses
  bool dirty;    // work was issued since the last mark
  bool marking;  // a mark is about to be queued, and it is not known yet whether it can be
  uint64_t id;
  CUstream handle;
  CUcontext context;
  uint64_t thread;     // the only thread that can name it (per-thread default stream), else 0
  uint64_t issued;     // marks handed out: a free from now on is covered by issued + 1
  uint64_t bytes;      // allocated and freed since the last mark
  uint64_t launch_ns;  // profiled GPU time issued since the last mark
  uint32_t launches;   // since the last mark
};

/// When a stream is due for a mark: a compromise between the cost of one (a call to the driver,
/// about that of a launch) and how late a free becomes visible. By bytes: a part of what the job
/// holds, but not less than this; else a job with many GiB would queue a mark every few launches.
inline constexpr uint64_t kMarkBytes = 8u << 20;
inline constexpr uint64_t kMarkPart = 64;
inline constexpr uint32_t kMarkLaunches = 16;
/// So many times rarer while nobody waits to see one: no other job wants memory, and no other
/// stream of this one.
inline constexpr uint32_t kCalmFactor = 64;

/// For how many marks streams count as taking turns.
inline constexpr uint32_t kMixedMarks = 256;

/// The streams that have a slot. Pure bookkeeping; the caller holds the state lock.
class StreamTable {
 public:
  static constexpr uint32_t kSlots = protocol::kStreamSlots;

  constexpr StreamTable() = default;
  void Clear();

  /// The slot of a stream, or kNoSlot.
  uint32_t Find(const StreamName& name) const;

  /// The slot of a stream that is no default one, whose handles stand for several, or kNoSlot.
  uint32_t OfHandle(CUstream handle) const;

  /// The slot, if this stream still has it: it may have changed hands while nobody held the lock.
  /// Else kNoSlot.
  uint32_t Still(uint32_t slot, const StreamName& name) const {
    return slot < kNoSlot && slots_[slot].id == name.id && slots_[slot].context == name.context
               ? slot
               : uint32_t{kNoSlot};
  }

  /// A slot for a new stream. When all are taken, one whose marks are all reached and which has no
  /// unsynced frees (`busy` says so) is given a new owner; its counter goes on, so old marks stay
  /// reached. `pinned` is never taken. kNoSlot when there is none.
  template <class Busy>
  uint32_t Acquire(uint64_t id, CUstream handle, CUcontext context, uint64_t thread,
                   uint32_t pinned, const protocol::MarkPage& marks, Busy busy) {
    uint32_t slot = kNoSlot;
    for (uint32_t i = 0; i < kSlots && slot == kNoSlot; ++i) {
      // Busy: a stream went without a mark behind its last frees, and the next owner's would cover
      // them.
      if (!slots_[i].active && !busy(i) && Idle(i, marks)) slot = i;
    }
    // Not the first: it is the legacy default stream's for good.
    for (uint32_t i = 1; i < kSlots && slot == kNoSlot; ++i) {
      if (i != pinned && !busy(i) && Idle(i, marks)) slot = i;
    }
    if (slot == kNoSlot) return kNoSlot;
    Assign(slot, id, handle, context, thread);
    return slot;
  }

  /// The stream is being destroyed; the slot is free for another once its marks are reached.
  void Retire(uint32_t slot) { slots_[slot].active = slots_[slot].ending = false; }
  /// It was not: the stream that had the slot with this id is there, if nobody else got it.
  void Restore(uint32_t slot, uint64_t id) {
    if (slots_[slot].id == id) slots_[slot].active = true;
  }

  /// The streams of this context go by another name of it, also those that are gone (their frees
  /// and marks may be under way), and are not there (`active` false), or are as before. f(slot) for
  /// each.
  template <class F>
  void NameContext(CUcontext from, CUcontext to, bool active, F f) {
    for (uint32_t i = 0; i < used_; ++i) {
      StreamSlot& entry = slots_[i];
      if (entry.context != from) continue;
      entry.context = to;
      if (active) {
        entry.active = entry.active || entry.ending;
        entry.ending = false;
      } else if (entry.active) {
        entry.active = false;
        entry.ending = true;
      }
      f(i);
    }
  }

  /// Until the next Issue or NotQueued the slot goes to no other stream.
  void Keep(uint32_t slot) { slots_[slot].marking = true; }
  /// Hands out the next mark: frees from now on belong to the one after it.
  uint64_t Issue(uint32_t slot);
  /// The driver does not take it: frees wait for the one after it.
  void NotQueued(uint32_t slot) { slots_[slot].marking = false; }
  /// The mark's write is in the stream's queue.
  void Queued(uint32_t slot, uint64_t value) {
    slots_[slot].marking = false;
    queued_[slot] = value;
    if (mixed_marks_ > 0) --mixed_marks_;
  }
  const uint64_t* queued() const { return queued_; }

  /// What the job holds, in bytes.
  void SetHeld(uint64_t bytes) {
    mark_bytes_ = bytes / kMarkPart > kMarkBytes ? bytes / kMarkPart : kMarkBytes;
  }
  /// A mark is due by bytes, launches or profiled time (an eighth of the credit; 0: no profile).
  /// `pressure`: other jobs want memory; without it nobody is held to the credit.
  bool Due(uint32_t slot, uint64_t credit_ns, bool pressure) const {
    const StreamSlot& entry = slots_[slot];
    const uint32_t factor = pressure || taking_turns() ? 1 : kCalmFactor;
    return entry.bytes >= factor * mark_bytes_ || entry.launches >= factor * kMarkLaunches ||
           (pressure && credit_ns != 0 && entry.launch_ns >= credit_ns / 8);
  }

  /// Whether blocks went from one stream to another lately.
  bool taking_turns() const { return mixed_marks_ > 0; }
  /// A block was allocated for, or freed on, this slot (kNoSlot: no stream, or none with a slot).
  void Uses(uint32_t slot) {
    if (slot == last_user_) [[likely]]
      return;
    if (last_user_ != kNobody) mixed_marks_ = kMixedMarks;
    last_user_ = slot;
  }

  /// The mark that will cover what is freed in the slot now; without one, none does.
  uint64_t NextMark(uint32_t slot) const { return slot < kNoSlot ? slots_[slot].issued + 1 : 0; }

  StreamSlot& operator[](uint32_t slot) { return slots_[slot]; }
  const StreamSlot& operator[](uint32_t slot) const { return slots_[slot]; }
  uint32_t used() const { return used_; }  // slots below this were ever assigned

 private:
  bool Idle(uint32_t slot, const protocol::MarkPage& marks) const {
    return !slots_[slot].marking &&
           protocol::MarkReached(marks.mark[slot].load(std::memory_order_acquire), queued_[slot]);
  }
  void Assign(uint32_t slot, uint64_t id, CUstream handle, CUcontext context, uint64_t thread);

  StreamSlot slots_[kSlots] = {};
  uint64_t queued_[kSlots] = {};
  uint64_t mark_bytes_ = kMarkBytes;
  uint32_t used_ = 0;
  static constexpr uint32_t kNobody = 0xffffffff;
  uint32_t last_user_ = kNobody;
  uint32_t mixed_marks_ = 0;  // left of kMixedMarks
};

}  // namespace sluice
