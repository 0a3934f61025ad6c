// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/builder.h"

#include <algorithm>
#include <utility>

#include "scheduler/text/fault.h"
#include "scheduler/text/lines.h"

namespace sluice::scheduler::trace {

namespace {

using text::Fault;
using text::IsPrintable;

std::string BlockText(uint64_t id) { return "block " + std::to_string(id); }

bool IsKeyCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

}  // namespace

Status TraceBuilder::AddHeader(std::string_view key, std::string_view value) {
  if (!trace_.blocks.empty() || !trace_.events.empty()) {
    return Fault("header", "after a block or event, header lines come before them");
  }
  if (key.empty() || !std::all_of(key.begin(), key.end(), IsKeyCharacter)) {
    return Fault("header", "the key must be of letters, digits, '_', '-' or '.'");
  }
  if (!std::all_of(value.begin(), value.end(), IsPrintable)) {
    return Fault("header", "the value must be of printable ASCII characters");
  }
  if (trace_.Find(key) != nullptr) {
    return Fault("header", "the key " + std::string(key) + " occurs twice");
  }
  if (trace_.header.size() == kMaxHeaderEntries) {
    return Fault("header", "more than " + std::to_string(kMaxHeaderEntries) + " entries");
  }
  trace_.header.push_back({std::string(key), std::string(value)});
  return Status();
}

Status TraceBuilder::AddBlock(const Block& block) {
  if (!trace_.events.empty()) return Fault("block", "after an event, blocks come before them");
  if (!trace_.blocks.empty() && block.kind < trace_.blocks.back().kind) {
    return Fault("kind", std::string(BlockKindName(block.kind)) + " after " +
                             std::string(BlockKindName(trace_.blocks.back().kind)) +
                             ", the order is persistent, input, transient");
  }
  if (trace_.blocks.size() == kMaxBlocks) {
    return Fault("block", "more than " + std::to_string(kMaxBlocks) + " blocks");
  }
  const bool transient = block.kind == BlockKind::kTransient;
  trace_.blocks.push_back(block);
  states_.push_back(transient ? State::kUnborn : State::kLive);
  named_last_.push_back(0);
  if (!transient) next_alloc_ = trace_.blocks.size();
  return Status();
}

Status TraceBuilder::CheckTransient(uint64_t block) const {
  if (block >= trace_.blocks.size()) {
    return Fault("id", BlockText(block) + " does not exist, there are " +
                           std::to_string(trace_.blocks.size()));
  }
  const BlockKind kind = trace_.blocks[block].kind;
  if (kind == BlockKind::kTransient) return Status();
  return Fault("id", BlockText(block) + " is " + std::string(BlockKindName(kind)) +
                         ", only transient blocks are allocated and freed");
}

Status TraceBuilder::Alloc(uint64_t block) {
  if (Status status = CheckTransient(block); !status.ok()) return status;
  if (block < next_alloc_) return Fault("id", BlockText(block) + " was allocated before");
  if (block > next_alloc_) {
    return Fault("id", BlockText(block) + " is out of order, the next to be allocated is " +
                           BlockText(next_alloc_));
  }
  states_[block] = State::kLive;
  ++next_alloc_;
  ++live_;
  trace_.events.push_back({EventKind::kAlloc, static_cast<uint32_t>(block)});
  return Status();
}

Status TraceBuilder::Free(uint64_t block) {
  if (Status status = CheckTransient(block); !status.ok()) return status;
  if (states_[block] == State::kUnborn) {
    return Fault("id", BlockText(block) + " is not allocated yet");
  }
  if (states_[block] == State::kFreed) return Fault("id", BlockText(block) + " was freed before");
  states_[block] = State::kFreed;
  --live_;
  trace_.events.push_back({EventKind::kFree, static_cast<uint32_t>(block)});
  return Status();
}

Status TraceBuilder::CheckUses(std::string_view field, const std::vector<BlockId>& blocks) {
  ++use_lists_;
  for (const BlockId block : blocks) {
    if (block >= trace_.blocks.size()) {
      return Fault(field, BlockText(block) + " does not exist, there are " +
                              std::to_string(trace_.blocks.size()));
    }
    if (states_[block] != State::kLive) {
      return Fault(field,
                   BlockText(block) + (states_[block] == State::kFreed ? " was freed before"
                                                                       : " is not allocated yet"));
    }
    if (named_last_[block] == use_lists_) return Fault(field, BlockText(block) + " occurs twice");
    named_last_[block] = use_lists_;
  }
  return Status();
}

Status TraceBuilder::AddOperator(Operator op) {
  if (op.name.empty() || !std::all_of(op.name.begin(), op.name.end(),
                                      [](char c) { return IsPrintable(c) && c != ' '; })) {
    return Fault("name", "must be of printable ASCII characters other than blanks");
  }
  if (trace_.operators.size() == kMaxOperators) {
    return Fault("op", "more than " + std::to_string(kMaxOperators) + " operators");
  }
  if (Status status = CheckUses("r", op.reads); !status.ok()) return status;
  if (Status status = CheckUses("w", op.writes); !status.ok()) return status;
  trace_.events.push_back({EventKind::kOperator, static_cast<uint32_t>(trace_.operators.size())});
  trace_.operators.push_back(std::move(op));
  return Status();
}

Result<Trace> TraceBuilder::Finish() {
  if (next_alloc_ < trace_.blocks.size()) {
    return Fault("end", BlockText(next_alloc_) + " was never allocated");
  }
  for (size_t block = 0; live_ > 0 && block < states_.size(); ++block) {
    if (trace_.blocks[block].kind != BlockKind::kTransient) continue;
    if (states_[block] == State::kLive) return Fault("end", BlockText(block) + " was never freed");
  }
  return std::exchange(*this, TraceBuilder()).trace_;
}

}  // namespace sluice::scheduler::trace
