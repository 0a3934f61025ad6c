// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "intercept/protocol/pages.h"

/// The one way in which either side touches the parts of the shared pages that need an order: the
/// record ring (single producer, single consumer) and the profile behind its sequence lock. Both
/// sides use these functions, so that one harness can prove them free of data races.
namespace sluice::protocol {

/// A record of the ring goes in and out as two words, each of them whole. Between honest ends the
/// head orders them; a client that breaks the rules may write at any time, and then the daemon's
/// copy is nonsense, but it is a copy: nobody looks at the shared record again after a check.
using RecordWord [[gnu::may_alias]] = uint64_t;

inline void StoreRecord(OpRecord& to, const OpRecord& from) {
  auto* words = reinterpret_cast<RecordWord*>(&to);
  const auto* values = reinterpret_cast<const RecordWord*>(&from);
  __atomic_store_n(words, values[0], __ATOMIC_RELAXED);
  __atomic_store_n(words + 1, values[1], __ATOMIC_RELAXED);
}

inline void LoadRecord(OpRecord& to, const OpRecord& from) {
  const auto* words = reinterpret_cast<const RecordWord*>(&from);
  auto* values = reinterpret_cast<RecordWord*>(&to);
  values[0] = __atomic_load_n(words, __ATOMIC_RELAXED);
  values[1] = __atomic_load_n(words + 1, __ATOMIC_RELAXED);
}

/// The daemon, on another core, has read this place a round ago: the line comes back from there
/// while the records before it are written, not when a lock waits for the store.
inline void PrepareStore(OpRecord& place) {
#if defined(__x86_64__)
  __asm__ volatile("prefetchw %0" : : "m"(place));
#else
  __builtin_prefetch(&place, 1);
#endif
}

/// Client. `cached_tail` is the producer's own copy of the consumer's position; it is refreshed
/// only when the ring looks full, so that a push normally touches no cache line of the daemon's.
inline bool PushRecord(ClientPage& page, const DaemonPage& daemon, uint64_t& cached_tail,
                       const OpRecord& record) {
  const uint64_t head = page.head.load(std::memory_order_relaxed);
  if (head - cached_tail >= kRingRecords) {
    cached_tail = daemon.tail.load(std::memory_order_acquire);
    if (head - cached_tail >= kRingRecords) {
      page.lost.store(page.lost.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return false;
    }
  }
  constexpr uint32_t kAhead = 16;  // records: four lines
  PrepareStore(page.ring[(head + kAhead) & (kRingRecords - 1)]);
  StoreRecord(page.ring[head & (kRingRecords - 1)], record);
  page.head.store(head + 1, std::memory_order_release);
  return true;
}

/// Daemon. Copies at most `max` records out and gives their places back. `tail` is the daemon's own
/// position (never re-read from shared memory); a head that is out of range reads as an empty ring.
inline size_t PopRecords(const ClientPage& page, DaemonPage& daemon, uint64_t& tail, OpRecord* out,
                         size_t max) {
  const uint64_t head = page.head.load(std::memory_order_acquire);
  const uint64_t available = head - tail;
  if (available > kRingRecords) return 0;
  const size_t count = available < max ? static_cast<size_t>(available) : max;
  for (size_t i = 0; i < count; ++i) {
    LoadRecord(out[i], page.ring[(tail + i) & (kRingRecords - 1)]);
  }
  tail += count;
  daemon.tail.store(tail, std::memory_order_release);
  return count;
}

/// The profile part of DaemonPage as a value; `seq` stands where DaemonPage::profile_seq does.
struct ProfileImage {
  uint32_t seq;
  uint32_t profile_id;
  uint32_t period;
  uint32_t pacing_slot;
  uint32_t window;
  TroughPlace trough_place;
  uint64_t trough_hash;
  uint64_t credit_ns;
  uint32_t gate_count;
  uint32_t reserved;
  GateEntry gates[kMaxGates];
  uint32_t launch_ns[kMaxPeriodLaunches];
};
static_assert(offsetof(ProfileImage, profile_id) == 4 && offsetof(ProfileImage, trough_hash) == 24);
static_assert(offsetof(DaemonPage, trough_hash) == offsetof(DaemonPage, profile_seq) + 24);
static_assert(offsetof(DaemonPage, launch_ns) ==
              offsetof(DaemonPage, profile_seq) + offsetof(ProfileImage, launch_ns));

/// A word of an image, whatever the type of the member it is part of: without the attribute an
/// optimiser may move the copy before the member's own assignment.
using ImageWord [[gnu::may_alias]] = uint32_t;

inline constexpr size_t kProfileWords =
    (offsetof(ProfileImage, launch_ns) + 4 * kMaxPeriodLaunches) / 4;

/// Daemon. A reader may see words of two images; the counter tells it. Each word is a release
/// store, so that whoever sees one also sees the odd counter before it (a fence in front of all of
/// them would do, but sanitizers do not model fences). image.seq is ignored.
inline void PublishProfile(DaemonPage& page, const ProfileImage& image) {
  const uint32_t seq = page.profile_seq.load(std::memory_order_relaxed);
  page.profile_seq.store(seq + 1, std::memory_order_relaxed);
  auto* to = reinterpret_cast<ImageWord*>(&page.profile_seq);
  const auto* from = reinterpret_cast<const ImageWord*>(&image);
  for (size_t i = 1; i < kProfileWords; ++i) __atomic_store_n(to + i, from[i], __ATOMIC_RELEASE);
  page.profile_seq.store(seq + 2, std::memory_order_release);
}

/// Client. False: the daemon is writing; try again at the next launch. On success image.seq is the
/// counter that the copy belongs to.
inline bool ReadProfile(const DaemonPage& page, ProfileImage* image) {
  const uint32_t seq = page.profile_seq.load(std::memory_order_acquire);
  if ((seq & 1) != 0) return false;
  const auto* from = reinterpret_cast<const ImageWord*>(&page.profile_seq);
  auto* to = reinterpret_cast<ImageWord*>(image);
  for (size_t i = 1; i < kProfileWords; ++i) to[i] = __atomic_load_n(from + i, __ATOMIC_ACQUIRE);
  if (page.profile_seq.load(std::memory_order_relaxed) != seq) return false;
  image->seq = seq;
  return true;
}

}  // namespace sluice::protocol
