// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/at_batch.h"

#include <algorithm>
#include <string>

#include "scheduler/text/fault.h"
#include "scheduler/trace/measured.h"

namespace sluice::scheduler::trace {

namespace {

using text::Fault;

Status TooLarge(const std::string& what) {
  return Fault(what, "more than " + std::to_string(kMaxNumber));
}

/// Both are at most kMaxNumber; false when their sum is not.
bool Add(uint64_t number, uint64_t* sum) {
  *sum += number;
  return *sum <= kMaxNumber;
}

Status SizeBlocks(const Trace& trace, BatchTrace* result) {
  result->block_bytes.reserve(trace.blocks.size());
  for (size_t id = 0; id < trace.blocks.size(); ++id) {
    const Block& block = trace.blocks[id];
    const std::optional<uint64_t> bytes = block.bytes.At(result->batch);
    if (!bytes.has_value()) return TooLarge("block " + std::to_string(id) + ": bytes");
    result->block_bytes.push_back(*bytes);
    if (block.kind == BlockKind::kPersistent && !Add(*bytes, &result->persistent_bytes)) {
      return TooLarge("all persistent blocks: bytes");
    }
    if (block.kind == BlockKind::kInput && !Add(*bytes, &result->input_bytes)) {
      return TooLarge("all input blocks: bytes");
    }
  }
  return Status();
}

Status CostOperators(const Trace& trace, BatchTrace* result) {
  result->costs.reserve(trace.operators.size());
  for (size_t index = 0; index < trace.operators.size(); ++index) {
    const Operator& op = trace.operators[index];
    const std::optional<uint64_t> flops = op.flops.At(result->batch);
    const std::optional<uint64_t> bytes = op.bytes.At(result->batch);
    if (!flops.has_value()) return TooLarge("op " + std::to_string(index) + ": flops");
    if (!bytes.has_value()) return TooLarge("op " + std::to_string(index) + ": bytes");
    result->costs.push_back({*flops, *bytes, 0});
  }
  return Status();
}

Status FollowLoad(const Trace& trace, BatchTrace* result) {
  result->load.reserve(trace.events.size());
  uint64_t load = 0;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind == EventKind::kAlloc && !Add(result->block_bytes[event.index], &load)) {
      return TooLarge("transient load after event " + std::to_string(i) + ": bytes");
    }
    if (event.kind == EventKind::kFree) load -= result->block_bytes[event.index];
    result->load.push_back(load);
    if (load > result->peak_bytes) {
      result->peak_bytes = load;
      result->peak_event = i;
    }
  }
  return Status();
}

/// After the others: what lives at the trough lives in the iteration.
Status ApplyMeasured(const Trace& trace, BatchTrace* result) {
  const uint64_t kept = result->persistent_bytes + result->input_bytes;
  result->trough_bytes = kept;
  const Result<Measured> measured = MeasuredOf(trace);
  if (!measured.ok()) return measured.status();
  if (measured->op_ns.empty()) return Status();
  if (measured->batch != result->batch) {
    return Fault("batch",
                 std::to_string(result->batch) + " is not the one that was measured, " +
                     "nothing is known of others; allowed: " + std::to_string(measured->batch));
  }
  for (size_t i = 0; i < result->costs.size(); ++i) result->costs[i].ns = measured->op_ns[i];
  if (measured->trough_bytes > kept + result->peak_bytes) {
    return Fault("trough_bytes", std::to_string(measured->trough_bytes) +
                                     " is more than ever lives, " +
                                     std::to_string(kept + result->peak_bytes));
  }
  result->trough_bytes = std::max(kept, measured->trough_bytes);
  return Status();
}

}  // namespace

Result<BatchTrace> AtBatch(const Trace& trace, uint64_t batch) {
  if (batch == 0 || batch > kMaxBatch) {
    return Fault("batch",
                 std::to_string(batch) + " must be between 1 and " + std::to_string(kMaxBatch));
  }
  BatchTrace result;
  result.batch = batch;
  for (const auto step : {SizeBlocks, CostOperators, FollowLoad}) {
    const Status status = step(trace, &result);
    if (!status.ok()) return status.Annotate("batch " + std::to_string(batch));
  }
  if (Status status = ApplyMeasured(trace, &result); !status.ok()) return status;
  return result;
}

}  // namespace sluice::scheduler::trace
