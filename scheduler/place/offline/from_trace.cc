// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/from_trace.h"

#include <string>
#include <vector>

#include "scheduler/trace/at_batch.h"

namespace sluice::scheduler {

Result<Instance> InstanceOf(const trace::Trace& trace, uint64_t batch, uint64_t granule_bytes) {
  const Result<trace::BatchTrace> sized = trace::AtBatch(trace, batch);
  if (!sized.ok()) return sized.status();
  std::vector<uint64_t> begins(trace.blocks.size());
  std::vector<uint64_t> ends(trace.blocks.size());
  for (size_t time = 0; time < trace.events.size(); ++time) {
    const trace::Event& event = trace.events[time];
    if (event.kind == trace::EventKind::kAlloc) begins[event.index] = time;
    if (event.kind == trace::EventKind::kFree) ends[event.index] = time;
  }
  Instance instance;
  uint64_t total = 0;
  for (size_t id = 0; id < trace.blocks.size(); ++id) {
    const uint64_t bytes = sized->block_bytes[id];
    if (trace.blocks[id].kind != trace::BlockKind::kTransient || bytes == 0) continue;
    const uint64_t granules = bytes / granule_bytes + (bytes % granule_bytes == 0 ? 0 : 1);
    const Buffer buffer{begins[id], ends[id], granules * granule_bytes};
    if (Status status = CheckBuffer(buffer, &total); !status.ok()) {
      return status.Annotate("block " + std::to_string(id));
    }
    instance.ids.push_back(std::to_string(id));
    instance.buffers.push_back(buffer);
  }
  return instance;
}

}  // namespace sluice::scheduler
