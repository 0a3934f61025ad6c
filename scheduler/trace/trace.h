// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/text/lines.h"

/// Memory traces: every block that one training iteration allocates, uses and frees, operator by
/// operator, for any batch size (the format: data/traces/README.md). All of scheduler/trace is
/// pure: text and values in, values out; safe from any number of threads.
namespace sluice::scheduler::trace {

/// Every number of a trace, and every number and sum at one batch size (at_batch.h), is at most
/// this.
inline constexpr uint64_t kMaxNumber = text::kMaxNumber;
inline constexpr uint64_t kMaxBatch = uint64_t{1} << 20;
inline constexpr size_t kMaxBlocks = size_t{1} << 20;
inline constexpr size_t kMaxOperators = size_t{1} << 20;
inline constexpr size_t kMaxHeaderEntries = 256;

/// Place of a block in Trace::blocks.
using BlockId = uint32_t;

/// A number that depends on the batch size: bytes, or floating point operations.
struct Linear {
  uint64_t fixed = 0;
  uint64_t per_sample = 0;

  /// The number for `batch` samples; nullopt when it is above kMaxNumber.
  constexpr std::optional<uint64_t> At(uint64_t batch) const {
    if (fixed > kMaxNumber) return std::nullopt;
    if (batch > 0 && per_sample > (kMaxNumber - fixed) / batch) return std::nullopt;
    return fixed + per_sample * batch;
  }
  bool operator==(const Linear&) const = default;
};

/// kPersistent (parameters, optimizer state) and kInput (the batch) live through the whole
/// iteration; kTransient blocks are allocated and freed in it.
enum class BlockKind : uint8_t { kPersistent, kInput, kTransient };

/// A storage. All views of it are the same block.
struct Block {
  BlockKind kind = BlockKind::kTransient;
  Linear bytes;  // as asked for, not rounded to an allocator's granularity
  bool operator==(const Block&) const = default;
};

enum class Phase : uint8_t { kForward, kBackward, kOptimizer };

/// An operator that launches at least one kernel.
struct Operator {
  std::string name;  // printable ASCII without blanks
  Phase phase = Phase::kForward;
  Linear flops;                 // a multiply-add is two; 0 unless a matrix product or the like
  Linear bytes;                 // read and written, each tensor touched once
  std::vector<BlockId> reads;   // each block once, in the order of the file
  std::vector<BlockId> writes;  // what is updated in place is in both
  bool operator==(const Operator&) const = default;
};

enum class EventKind : uint8_t { kAlloc, kFree, kOperator };

struct Event {
  EventKind kind = EventKind::kAlloc;
  uint32_t index = 0;  // of the block, or of the operator in Trace::operators
  bool operator==(const Event&) const = default;
};

struct HeaderEntry {
  std::string key;    // letters, digits, '_', '-', '.'
  std::string value;  // printable ASCII, may be empty
  bool operator==(const HeaderEntry&) const = default;
};

/// A valid trace, as TraceBuilder (builder.h) makes it: blocks in the order persistent, input,
/// transient; each transient block allocated once, in the order of the ids, and freed once, later;
/// operators numbered in the order of their events, using only blocks that live. There may be no
/// operators at all (an imported allocation record).
struct Trace {
  std::vector<HeaderEntry> header;  // keys are unique
  std::vector<Block> blocks;
  std::vector<Operator> operators;
  std::vector<Event> events;  // in program order, as the host issues them
  bool operator==(const Trace&) const = default;

  /// The value of a header entry; nullptr when there is none.
  const std::string* Find(std::string_view key) const;
};

/// The words of the format: "persistent", "forward", ...
std::string_view BlockKindName(BlockKind kind);
std::string_view PhaseName(Phase phase);
std::optional<BlockKind> ParseBlockKind(std::string_view name);
std::optional<Phase> ParsePhase(std::string_view name);

}  // namespace sluice::scheduler::trace
