// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>

#include "intercept/protocol/wire.h"

/// The three shared pages of a session. One writer per page:
///   MarkPage    the GPU (stream memory operations queued by the client)
///   ClientPage  the client, under its own lock
///   DaemonPage  the daemon
/// Either side copies a value once and then checks it; the other side may be hostile. Sizes are
/// sealed.
namespace sluice::protocol {

/// One counter per stream slot, raised by cuStreamWriteValue64 behind the work it covers. A counter
/// starts at 0 and grows by 1 per mark; it is neither time nor bytes.
struct MarkPage {
  std::atomic<uint64_t> mark[kStreamSlots];
};

/// The only comparison of marks: cyclic and signed, as the driver's GEQ.
inline bool MarkReached(uint64_t current, uint64_t value) {
  return static_cast<int64_t>(current - value) >= 0;
}

enum class OpKind : uint8_t {
  kAlloc = 1,  // value = bytes as placed (rounded to the block granule); stream = allocation stream
  kFree = 2,   // value = bytes as placed; stream = free stream
  kLaunch = 3,  // value = function id (stable within the process); detail = launch number (wraps)
  kCopy = 4,    // value = bytes
  kLaunchTime = 5,  // value = GPU nanoseconds of the launch numbered `detail`
  kIteration = 6,  // value = iteration number; the client passed gate 0 just before the next record
};

struct OpRecord {
  uint8_t kind;    // OpKind
  uint8_t stream;  // slot
  uint16_t reserved;
  uint32_t detail;
  uint64_t value;
};

inline constexpr uint32_t kRingRecords = 1u << 16;

/// Single producer (the client, under its lock), single consumer (the daemon). The daemon's
/// position is in DaemonPage. When the ring is full the client counts `lost` and drops: it never
/// waits.
struct ClientPage {
  alignas(64) std::atomic<uint64_t> head;  // records ever written
  std::atomic<uint64_t> lost;              // records dropped
  // The one word here that the daemon writes: 1, a daemon that was started anew waits for this
  // client's Resume. A client that asks for nothing would not notice otherwise. 0 once it has.
  std::atomic<uint32_t> resume_wanted;
  // 1: it has launched kernels that wait for other GPUs'. Older clients leave 0.
  std::atomic<uint32_t> collectives;
  alignas(64) std::atomic<uint64_t> live_bytes;  // statistics for people, not for decisions
  std::atomic<uint64_t> held_bytes;
  std::atomic<uint64_t> credit_wait_ns;
  std::atomic<uint64_t> gate_wait_ns;
  std::atomic<uint64_t> run_ahead_ns;  // GPU time issued behind the last mark that was reached
  alignas(64) OpRecord ring[kRingRecords];
};

inline constexpr uint32_t kMaxGates = 128;
inline constexpr uint32_t kMaxPeriodLaunches = 16384;

/// A launch of the cycle after which the client may have to wait. Gate 0 is the trough.
struct GateEntry {
  uint32_t launch;      // gate k > 0: wait after this many launches of the cycle were issued (1 ..
                        // period - 1)
  uint32_t need_units;  // the most the client needs to hold until the next gate
};

/// Where in the cycle the trough is: it is cut in the hook of the cycle's first launch, before that
/// launch is issued (kBeforeFirst), or after its last launch was issued (kAfterLast), whichever of
/// the two places holds less.
enum class TroughPlace : uint32_t { kBeforeFirst = 0, kAfterLast = 1 };

enum DaemonFlags : uint32_t {
  // Give back what this group does not need, drain at the trough. On while another job is admitted
  // or
  // waits to be, whether or not anybody wants memory right now: once a gate was granted with it on,
  // the
  // other jobs were promised what comes back. Also on until a base was measured at a drained
  // trough.
  kPressure = 1,
  kWantTimes = 2,  // time the launches with events and report kLaunchTime
  kCreditOff =
      4,  // measurement only: the CPU waits for the GPU neither for credit nor at the trough
};

/// How often a daemon that lives raises DaemonPage::beats, about.
inline constexpr uint64_t kBeatNs = 1'000'000'000;

/// Everything the daemon tells a client without being asked. `profile_seq` is a sequence lock over
/// the part below it: odd while the daemon writes; profile_id 0 means "no profile".
struct DaemonPage {
  alignas(64) std::atomic<uint64_t> tail;  // records the daemon has consumed
  std::atomic<uint32_t> flags;             // DaemonFlags
  // Current limit. One from --limit never changes. Otherwise it falls to what the job has shown to
  // need once that is known, never below what it holds, and may grow again while the pool has room.
  std::atomic<uint32_t> limit_units;
  // Grows while the daemon's loop turns: one that is stopped or hangs leaves it as it is. Neither
  // time nor a number of anything. Since protocol 1.7; a daemon that took over from one that knew
  // it, and does not itself, leaves what that one wrote.
  std::atomic<uint64_t> beats;
  alignas(64) std::atomic<uint32_t> profile_seq;
  uint32_t profile_id;
  uint32_t period;       // launches per iteration on the pacing stream
  uint32_t pacing_slot;  // stream slot whose launches are counted
  uint32_t window;       // launches in the rolling hash
  TroughPlace trough_place;
  uint64_t trough_hash;  // LaunchHash over the last `window` launches of the cycle
  uint64_t credit_ns;    // GPU time the CPU may run ahead
  uint32_t gate_count;   // entries of gates, gate 0 included
  uint32_t reserved;
  GateEntry gates[kMaxGates];
  uint32_t launch_ns[kMaxPeriodLaunches];  // GPU time of each launch of the cycle, from its first
};

/// Hash of a launch sequence, oldest first: start with kHashSeed, fold each function id in. The
/// daemon and the client must agree on it, so it stands here.
inline constexpr uint64_t kHashSeed = 0x9e3779b97f4a7c15u;
inline constexpr uint64_t kHashMultiplier = 0x100000001b3u;
constexpr uint64_t FoldLaunch(uint64_t hash, uint64_t function_id) {
  return hash * kHashMultiplier + (function_id ^ (function_id >> 29)) + 1;
}

static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(sizeof(MarkPage) == 8 * kStreamSlots);
static_assert(sizeof(OpRecord) == 16);
static_assert(offsetof(ClientPage, live_bytes) == 64 && offsetof(ClientPage, ring) == 128 &&
              offsetof(DaemonPage, profile_seq) == 64 && offsetof(DaemonPage, beats) == 16);

}  // namespace sluice::protocol
