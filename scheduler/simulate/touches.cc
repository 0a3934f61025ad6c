// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/simulate/touches.h"

#include <algorithm>
#include <string>

#include "scheduler/place/offline/fit.h"
#include "scheduler/place/offline/from_trace.h"

namespace sluice::scheduler::simulate {

namespace {

template <typename Value>
std::span<const Value> Part(const std::vector<Value>& values, const std::vector<size_t>& ends,
                            size_t at) {
  if (at >= ends.size()) return {};
  const size_t begin = at == 0 ? 0 : ends[at - 1];
  return std::span(values).subspan(begin, ends[at] - begin);
}

bool Has(const std::vector<trace::BlockId>& ids, trace::BlockId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

std::span<const Touch> Touches::Of(size_t kernel) const {
  return Part(touches, touch_ends, kernel);
}

std::span<const uint32_t> Touches::FreedAfter(size_t kernel) const {
  return Part(freed, freed_ends, kernel);
}

Touches TouchesOf(const trace::Trace& trace, const trace::BatchTrace& at) {
  Touches touches;
  touches.buffer_bytes = at.block_bytes;
  const auto add = [&touches](trace::BlockId id, bool writes) {
    if (touches.buffer_bytes[id] > 0) touches.touches.push_back({id, writes});
  };
  for (const trace::Event& event : trace.events) {
    if (event.kind == trace::EventKind::kFree) {
      // What was freed before the first kernel was touched by none.
      if (!touches.touch_ends.empty()) touches.freed.push_back(event.index);
    } else if (event.kind == trace::EventKind::kOperator) {
      if (!touches.touch_ends.empty()) touches.freed_ends.push_back(touches.freed.size());
      const trace::Operator& op = trace.operators[event.index];
      for (const trace::BlockId id : op.reads) add(id, Has(op.writes, id));
      for (const trace::BlockId id : op.writes) {
        if (!Has(op.reads, id)) add(id, true);
      }
      touches.touch_ends.push_back(touches.touches.size());
    }
  }
  touches.freed_ends.push_back(touches.freed.size());
  return touches;
}

Result<Touches> KeptTouchesOf(const trace::Trace& trace, const trace::BatchTrace& at,
                              uint64_t block_bytes) {
  constexpr uint64_t kGranule = 512;  // of the frameworks' allocators
  const Result<Instance> instance = InstanceOf(trace, at.batch, kGranule);
  if (!instance.ok()) return instance.status();
  const Offsets placed = PlaceByFit(instance->buffers, FitOrder::kTime, FitHole::kBest);
  uint64_t end = Footprint(instance->buffers, placed);
  std::vector<uint64_t> offsets(trace.blocks.size());
  for (size_t i = 0; i < placed.size(); ++i) offsets[std::stoul(instance->ids[i])] = placed[i];
  for (size_t id = 0; id < trace.blocks.size(); ++id) {
    if (trace.blocks[id].kind == trace::BlockKind::kTransient) continue;
    offsets[id] = end;
    end += at.block_bytes[id];
  }
  const Touches apart = TouchesOf(trace, at);
  Touches kept;
  kept.buffer_bytes.assign((end + block_bytes - 1) / block_bytes, block_bytes);
  for (size_t kernel = 0; kernel < apart.touch_ends.size(); ++kernel) {
    for (const Touch& touch : apart.Of(kernel)) {
      const uint64_t first = offsets[touch.buffer] / block_bytes;
      const uint64_t last =
          (offsets[touch.buffer] + apart.buffer_bytes[touch.buffer] - 1) / block_bytes;
      kept.touches.push_back(
          {static_cast<uint32_t>(first), touch.writes, static_cast<uint32_t>(last - first + 1)});
    }
    kept.touch_ends.push_back(kept.touches.size());
    kept.freed_ends.push_back(0);
  }
  return kept;
}

}  // namespace sluice::scheduler::simulate
