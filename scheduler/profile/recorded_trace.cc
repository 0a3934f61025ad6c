// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/profile/recorded_trace.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/text/lines.h"
#include "scheduler/trace/builder.h"
#include "scheduler/trace/measured.h"

namespace sluice::scheduler {

namespace {

using trace::Block;
using trace::BlockKind;
using trace::TraceBuilder;

Status Cannot(const std::string& why) { return Status(StatusCode::kFailedPrecondition, why); }

/// The transient blocks of an iteration, and which of them each record is about.
struct Blocks {
  std::vector<uint64_t> earlier;  // bytes of those that were there before
  std::vector<uint64_t> own;
  struct Use {
    bool earlier = false;
    size_t place = 0;
  };
  std::vector<Use> uses;          // of each kAlloc and kFree, in order
  std::vector<size_t> left_over;  // of `own`, not freed
};

Blocks FindBlocks(const std::vector<Op>& ops) {
  Blocks blocks;
  std::unordered_map<uint64_t, std::vector<size_t>> live;  // by bytes, the latest at the end
  for (const Op& op : ops) {
    if (op.kind == OpKind::kAlloc) {
      live[op.value].push_back(blocks.own.size());
      blocks.uses.push_back({false, blocks.own.size()});
      blocks.own.push_back(op.value);
    } else if (op.kind == OpKind::kFree) {
      std::vector<size_t>& same = live[op.value];
      if (same.empty()) {
        blocks.uses.push_back({true, blocks.earlier.size()});
        blocks.earlier.push_back(op.value);
      } else {
        blocks.uses.push_back({false, same.back()});
        same.pop_back();
      }
    }
  }
  for (const auto& [bytes, places] : live) {
    blocks.left_over.insert(blocks.left_over.end(), places.begin(), places.end());
  }
  std::sort(blocks.left_over.begin(), blocks.left_over.end());
  return blocks;
}

/// Nobody knows what the kernels are called; the same function has the same name.
class FunctionNames {
 public:
  std::string Of(uint64_t function) {
    const auto place = places_.try_emplace(function, places_.size()).first->second;
    return "function" + std::to_string(place);
  }

 private:
  std::map<uint64_t, size_t> places_;
};

std::string Printable(std::string_view text) {
  std::string printable(text);
  std::replace_if(
      printable.begin(), printable.end(), [](char c) { return !text::IsPrintable(c); }, '?');
  return printable;
}

Status AddHeader(const IterationRecorder& recorder, std::string_view name, TraceBuilder* builder) {
  const Recording& recording = *recorder.last();
  trace::Measured measured;
  for (const uint32_t ns : recorder.profile().launch_ns) {
    measured.op_ns.push_back(std::max<uint32_t>(ns, 1));
  }
  measured.trough_bytes = recording.live_bytes;
  Status status = builder->AddHeader("model", Printable(name));
  if (status.ok()) status = builder->AddHeader("source", "a live job, as its node recorded it");
  if (status.ok() && recorder.iteration_ns() != 0) {
    status = builder->AddHeader(kIterationNsKey, std::to_string(recorder.iteration_ns()));
  }
  if (status.ok() && recording.launches_beside != 0) {
    status = builder->AddHeader("launches_beside", std::to_string(recording.launches_beside));
  }
  if (status.ok()) status = trace::AddMeasured(measured, builder);
  return status;
}

Status AddBlocks(const Blocks& blocks, uint64_t live_bytes, TraceBuilder* builder) {
  uint64_t earlier = 0;
  for (const uint64_t bytes : blocks.earlier) earlier = std::min(earlier + bytes, live_bytes);
  // More can only have been freed than lived where records of allocations are missing.
  const uint64_t kept = live_bytes - earlier;
  Status status;
  if (kept > 0) status = builder->AddBlock({BlockKind::kPersistent, {kept, 0}});
  for (const auto* list : {&blocks.earlier, &blocks.own}) {
    for (const uint64_t bytes : *list) {
      if (status.ok()) status = builder->AddBlock({BlockKind::kTransient, {bytes, 0}});
    }
  }
  return status;
}

Status AddEvents(const std::vector<Op>& ops, const Blocks& blocks, TraceBuilder* builder) {
  const size_t first_own = builder->blocks() - blocks.own.size();
  const size_t first_earlier = first_own - blocks.earlier.size();
  Status status;
  for (size_t id = first_earlier; id < first_own && status.ok(); ++id) status = builder->Alloc(id);
  FunctionNames names;
  size_t use = 0;
  for (size_t i = 0; i < ops.size() && status.ok(); ++i) {
    if (ops[i].kind == OpKind::kLaunch) {
      trace::Operator op;
      op.name = names.Of(ops[i].value);
      status = builder->AddOperator(std::move(op));
      continue;
    }
    const Blocks::Use& of = blocks.uses[use++];
    const size_t id = (of.earlier ? first_earlier : first_own) + of.place;
    status = ops[i].kind == OpKind::kAlloc ? builder->Alloc(id) : builder->Free(id);
  }
  for (size_t i = 0; i < blocks.left_over.size() && status.ok(); ++i) {
    status = builder->Free(first_own + blocks.left_over[i]);
  }
  return status;
}

}  // namespace

Result<trace::Trace> TraceOf(const IterationRecorder& recorder, std::string_view name) {
  const Recording* recording = recorder.last();
  if (recording == nullptr) {
    return Cannot(recorder.too_long() ? "an iteration has more operations than are recorded"
                                      : "no whole iteration was recorded");
  }
  const auto too_large = [](const Op& op) {
    return op.kind != OpKind::kLaunch && op.value > trace::kMaxNumber;
  };
  if (recording->live_bytes > trace::kMaxNumber ||
      std::any_of(recording->ops.begin(), recording->ops.end(), too_large)) {
    return Cannot("it has more bytes than a trace can say");
  }
  TraceBuilder builder;
  const Blocks blocks = FindBlocks(recording->ops);
  Status status = AddHeader(recorder, name, &builder);
  if (status.ok()) status = AddBlocks(blocks, recording->live_bytes, &builder);
  if (status.ok()) status = AddEvents(recording->ops, blocks, &builder);
  if (!status.ok()) return Cannot(status.message());
  Result<trace::Trace> made = builder.Finish();
  if (!made.ok()) return Cannot(made.status().message());
  return made;
}

}  // namespace sluice::scheduler
