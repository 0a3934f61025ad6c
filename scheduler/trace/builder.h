// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <vector>

#include "common/status.h"
#include "scheduler/trace/trace.h"

namespace sluice::scheduler::trace {

/// Makes a Trace record by record and keeps its rules (trace.h): the one place that knows them.
/// Each call either adds its record or changes nothing and says "<field>: <what is wrong>".
/// Numbers must be at most kMaxNumber already, for only the caller knows what they are called.
class TraceBuilder {
 public:
  Status AddHeader(std::string_view key, std::string_view value);
  /// The block's id is the number of blocks before it.
  Status AddBlock(const Block& block);
  Status Alloc(uint64_t block);
  Status Free(uint64_t block);
  /// The operator's index is the number of operators before it.
  Status AddOperator(Operator op);

  /// The trace, when nothing is left to be allocated or freed. The builder is empty afterwards.
  Result<Trace> Finish();

  size_t blocks() const { return trace_.blocks.size(); }
  size_t operators() const { return trace_.operators.size(); }

 private:
  enum class State : uint8_t { kUnborn, kLive, kFreed };

  Status CheckTransient(uint64_t block) const;
  Status CheckUses(std::string_view field, const std::vector<BlockId>& blocks);

  Trace trace_;
  std::vector<State> states_;         // of each block
  std::vector<uint32_t> named_last_;  // of each block: the list of uses that named it last
  uint32_t use_lists_ = 0;
  size_t next_alloc_ = 0;  // the transient block that is allocated next
  size_t live_ = 0;        // transient blocks
};

}  // namespace sluice::scheduler::trace
