// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/flow/ring_reader.h"

#include <algorithm>
#include <optional>

#include "intercept/protocol/page_access.h"

namespace sluice::flow {
namespace {

constexpr size_t kBatch = 256;

/// nullopt: no client of this protocol writes such a record.
std::optional<scheduler::Op> ToOp(const protocol::OpRecord& record, uint64_t max_bytes) {
  scheduler::Op op;
  op.stream = record.stream;
  op.detail = record.detail;
  op.value = record.value;
  switch (static_cast<protocol::OpKind>(record.kind)) {
    case protocol::OpKind::kAlloc:
      op.kind = scheduler::OpKind::kAlloc;
      break;
    case protocol::OpKind::kFree:
      op.kind = scheduler::OpKind::kFree;
      break;
    case protocol::OpKind::kLaunch:
      op.kind = scheduler::OpKind::kLaunch;
      return op;
    case protocol::OpKind::kCopy:
      op.kind = scheduler::OpKind::kCopy;
      return op;
    case protocol::OpKind::kLaunchTime:
      op.kind = scheduler::OpKind::kLaunchTime;
      return op;
    case protocol::OpKind::kIteration:
      op.kind = scheduler::OpKind::kIteration;
      return op;
    default:
      return std::nullopt;
  }
  if (op.value > max_bytes) return std::nullopt;
  return op;
}

}  // namespace

bool RingReader::more() const {
  const uint64_t ahead = pages_.client->head.load(std::memory_order_acquire) - tail_;
  return ahead > 0 && ahead <= protocol::kRingRecords;
}

RingReader::Outcome RingReader::Consume(scheduler::Profiler* profiler, size_t max,
                                        uint64_t max_bytes,
                                        scheduler::IterationRecorder* recorder) {
  Outcome outcome;
  // Before the records: what was lost after this look is seen at the next.
  const uint64_t lost = pages_.client->lost.load(std::memory_order_acquire);
  if (lost != lost_) outcome.lost = true;
  lost_ = lost;
  protocol::OpRecord batch[kBatch];
  for (size_t left = max; left > 0;) {
    const size_t count =
        protocol::PopRecords(*pages_.client, *pages_.daemon, tail_, batch, std::min(left, kBatch));
    if (count == 0) return outcome;
    left -= count;
    outcome.records += count;
    for (size_t i = 0; i < count; ++i) {
      const std::optional<scheduler::Op> op = ToOp(batch[i], max_bytes);
      if (!op.has_value()) {
        outcome.lost = true;
        continue;
      }
      if (op->kind == scheduler::OpKind::kLaunch) {
        ++outcome.launches;
        if (op->stream == pacing_) ++place_.launches;
        if (functions_.size() < kMaxFunctions) functions_.insert(op->value);
      }
      if (op->kind == scheduler::OpKind::kCopy) ++outcome.copies;
      if (op->kind == scheduler::OpKind::kIteration) place_ = {true, op->value, 0};
      profiler->Consume(*op);
      if (recorder != nullptr) recorder->Consume(*op, *profiler);
    }
  }
  outcome.more = true;
  return outcome;
}

}  // namespace sluice::flow
