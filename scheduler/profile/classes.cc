// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/profile/classes.h"

#include <numeric>

namespace sluice::scheduler {

namespace {

using trace::BlockKind;
using trace::EventKind;
using trace::Trace;

/// Of one block, while the operators go by.
struct Uses {
  bool made = false;          // some operator has written it
  bool made_forward = false;  // the first one did so in the forward pass
  bool used_later = false;    // by another operator, in the backward pass or by the optimizer
};

size_t Index(BlockClass kind) { return static_cast<size_t>(kind); }

}  // namespace

std::string_view BlockClassName(BlockClass kind) {
  switch (kind) {
    case BlockClass::kPersistent:
      return "persistent";
    case BlockClass::kInput:
      return "input";
    case BlockClass::kFeatureMap:
      return "feature map";
    case BlockClass::kGradient:
      return "gradient";
    case BlockClass::kTemporary:
      return "temporary";
  }
  return "";
}

std::vector<BlockClass> Classify(const Trace& trace) {
  std::vector<Uses> uses(trace.blocks.size());
  for (const trace::Operator& op : trace.operators) {
    const bool forward = op.phase == trace::Phase::kForward;
    for (const auto* blocks : {&op.reads, &op.writes}) {
      for (const trace::BlockId block : *blocks) {
        if (uses[block].made && !forward) uses[block].used_later = true;
      }
    }
    // Afterwards, for what an operator updates in place it may have made itself.
    for (const trace::BlockId block : op.writes) {
      if (uses[block].made) continue;
      uses[block].made = true;
      uses[block].made_forward = forward;
    }
  }
  std::vector<BlockClass> classes(trace.blocks.size(), BlockClass::kTemporary);
  for (size_t i = 0; i < classes.size(); ++i) {
    if (trace.blocks[i].kind == BlockKind::kPersistent) classes[i] = BlockClass::kPersistent;
    if (trace.blocks[i].kind == BlockKind::kInput) classes[i] = BlockClass::kInput;
    if (trace.blocks[i].kind != BlockKind::kTransient || !uses[i].used_later) continue;
    classes[i] = uses[i].made_forward ? BlockClass::kFeatureMap : BlockClass::kGradient;
  }
  return classes;
}

uint64_t CurvePoint::total() const {
  return std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
}

std::vector<CurvePoint> DemandCurve(const Trace& trace, const trace::BatchTrace& at,
                                    std::span<const double> launch_ns) {
  const std::vector<BlockClass> classes = Classify(trace);
  CurvePoint now;
  now.bytes[Index(BlockClass::kPersistent)] = at.persistent_bytes;
  now.bytes[Index(BlockClass::kInput)] = at.input_bytes;
  std::vector<CurvePoint> curve;
  curve.reserve(trace.operators.size());
  for (const trace::Event& event : trace.events) {
    if (event.kind == EventKind::kOperator) {
      now.ns += curve.empty() ? 0 : launch_ns[curve.size() - 1];
      curve.push_back(now);
      continue;
    }
    uint64_t& bytes = now.bytes[Index(classes[event.index])];
    if (event.kind == EventKind::kAlloc) {
      bytes += at.block_bytes[event.index];
    } else {
      bytes -= at.block_bytes[event.index];
    }
    // What comes and goes between two launches counts where it was most.
    if (!curve.empty() && now.total() > curve.back().total()) curve.back().bytes = now.bytes;
  }
  return curve;
}

}  // namespace sluice::scheduler
