// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::simgpu {

/// The memory that a context and its executor share (a memfd): commands in, completions out.
inline constexpr uint32_t kMaxRingSlots = 65536;
inline constexpr uint32_t kStreams = 1024;  // streams of a context at one time
inline constexpr uint32_t kLegacyStream = 0;
inline constexpr uint32_t kEventSlots = 65536;
inline constexpr uint64_t kStagingBytes = 32u << 20;
inline constexpr uint32_t kInlineArgs = 152;

enum class CommandKind : uint8_t {
  kKernel,
  kCopy,
  kMemset,
  kRecordEvent,
  kWaitEvent,
  kWriteValue,
  kWaitValue,
  kHostFunction,
  kNothing,  // keeps its place in the stream, for those that wait for it
  kGraph,    // a program of operations (simgpu/graph/program.h)
};

enum CommandFlags : uint8_t {
  kBlocking = 1,  // the stream takes part in the legacy stream's barriers
  kSourceStaged =
      2,  // copy: `source` is an offset into the staging area (kernel: arguments are there)
  kTargetStaged = 4,   // copy: `target` is one
  kEvenInFailure = 8,  // host function: called though the context has failed
};

/// One operation. `id` grows by one with each operation of the context, over all its streams; a
/// stream is done with operation n when completed[stream] >= n.
struct Command {
  uint64_t id;
  uint32_t stream;
  CommandKind kind;
  uint8_t flags;
  uint16_t reserved;
  /// Of the executor: device clock when it saw the operation. In virtual time of the client: its
  /// clock when it issued the operation.
  uint64_t seen_ns;
  union {
    struct {
      uint32_t function;
      uint32_t grid[3];
      uint32_t block[3];
      uint32_t shared_bytes;
      uint32_t arg_bytes;
      uint32_t pad;
      uint64_t staged_args;  // offset, with kSourceStaged
      unsigned char args[kInlineArgs];
    } kernel;
    struct {
      uint64_t target;
      uint64_t source;
      uint64_t bytes;  // of one row
      // A box of rows and layers of rows; rows 0: one row and nothing else counts.
      uint64_t rows;
      uint64_t layers;
      uint64_t target_pitch;
      uint64_t target_layer;  // bytes from layer to layer
      uint64_t source_pitch;
      uint64_t source_layer;
    } copy;
    struct {
      uint64_t target;
      uint64_t count;  // elements, of one row
      uint32_t value;
      uint32_t width;  // bytes per element: 1, 2 or 4
      uint64_t rows;   // 0: one row
      uint64_t pitch;
    } memset;
    struct {
      uint32_t slot;
      uint32_t shared;  // number on the board of shared events plus one; 0: not shared
      uint64_t record;
    } event;
    struct {
      uint64_t id;  // of an operation, or of a record of a shared event
      uint32_t stream;
      uint32_t peer;    // context of that stream as the executor numbers them; 0: this one
      uint32_t shared;  // as above
    } wait_event;
    struct {
      uint64_t address;
      uint64_t value;
      uint32_t equal;  // wait: 1 for EQ, 0 for cyclic GEQ
      uint32_t width;  // bytes: 4, or 8 (also written 0)
    } value;
    struct {
      uint64_t ticket;  // by which the client knows the function; never used again
    } host;
    struct {
      uint64_t program;  // offset in the staging area
      uint64_t bytes;
    } graph;
  };
};
static_assert(sizeof(Command) == 224);

struct Channel {
  /// Power of two, at least launch_queue: no more operations than that are outstanding, so the ring
  /// never overflows. Set before the executor starts.
  uint32_t ring_slots;

  // Written by the client.
  alignas(64)
      std::atomic<uint64_t> submitted;  // operations ever issued; n is in slot (n-1) % ring_slots
  alignas(64) std::atomic<uint32_t> doorbell;  // futex: moves when there is something new
  std::atomic<uint64_t> host_function_done;    // ticket of the last host function that returned

  // Written by the executor.
  alignas(64) std::atomic<uint32_t> sleeping;  // 1: waits for the doorbell
  alignas(64) std::atomic<uint64_t> finished;  // operations ever completed
  std::atomic<uint32_t> progress;              // futex: moves with each completion
  std::atomic<uint32_t> error;                 // CUresult; sticky
  std::atomic<uint64_t> host_function;         // ticket of the host function whose turn it is
  std::atomic<uint32_t> host_function_bell;    // futex

  // Written by the client.
  alignas(64) std::atomic<uint32_t> waiters;  // threads that wait for `progress`

  alignas(64) std::atomic<uint64_t> completed[kStreams];
  std::atomic<uint64_t> event_ns[kEventSlots];  // device clock at the last record
  alignas(4096) Command ring[kMaxRingSlots];
  alignas(4096) unsigned char staging[kStagingBytes];

  Command& Slot(uint64_t id) { return ring[(id - 1) & (ring_slots - 1)]; }
};

}  // namespace sluice::simgpu
