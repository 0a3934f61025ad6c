// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/driver/graph_allocations.h"

#include "simgpu/graph/memory_nodes.h"

namespace sluice::simgpu {

CUresult GraphAllocations::New(CUgraph graph, const Links& dependencies, int ordinal,
                               uint64_t bytes, CUdeviceptr* out) {
  Sweep();
  GraphMemory* memory = driver_->FindDevice(ordinal)->graph_memory.get();
  const auto again = ReusableBlock(graph, dependencies, bytes);
  if (again && uses_.at(*again).memory == memory) {
    *out = *again;
    return CUDA_SUCCESS;
  }
  const std::lock_guard lock(driver_->mutex);
  const std::optional<uint64_t> address = memory->Reserve(bytes);
  if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
  uses_[*address].memory = memory;
  uses_[*address].holders[graph->serial] = false;
  *out = *address;
  return CUDA_SUCCESS;
}

CUresult GraphAllocations::AllowFree(CUgraph graph, CUdeviceptr address) const {
  const auto found = uses_.find(address);
  if (found == uses_.end() || !MayFree(graph, address)) return CUDA_ERROR_INVALID_VALUE;
  const bool home = EffectsOf(Root(graph)).blocks.contains(address);
  const bool other = home ? found->second.freed_elsewhere : found->second.freed_at_home;
  return other ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

void GraphAllocations::NoteFree(CUgraph graph, CUdeviceptr address) {
  const bool home = EffectsOf(Root(graph)).blocks.contains(address);
  (home ? uses_.at(address).freed_at_home : uses_.at(address).freed_elsewhere) = true;
}

void GraphAllocations::Hold(CUgraph executable) {
  for (const CUdeviceptr address : EffectsOf(executable).blocks) {
    uses_.at(address).holders[executable->serial] = true;
  }
}

void GraphAllocations::Drop(CUgraph graph) {
  for (const CUdeviceptr address : EffectsOf(graph).blocks) {
    const auto found = uses_.find(address);
    if (found != uses_.end()) found->second.holders.erase(graph->serial);
  }
  Sweep();
}

CUresult GraphAllocations::Prepare(CUgraph executable, bool free_first, MemoryEffects* out) {
  const MemoryEffects effects = EffectsOf(executable);
  for (const CUdeviceptr address : effects.left) {
    if (uses_.at(address).live && !free_first) return CUDA_ERROR_INVALID_VALUE;
  }
  for (const CUdeviceptr address : effects.foreign) {
    const auto found = uses_.find(address);
    if (found == uses_.end() || !found->second.live) return CUDA_ERROR_INVALID_VALUE;
  }
  for (const CUdeviceptr address : effects.left) uses_.at(address).live = false;
  if (const CUresult result = Back(executable); result != CUDA_SUCCESS) return result;
  for (const auto* addresses : {&effects.blocks, &effects.foreign}) {
    for (const CUdeviceptr address : *addresses) ++uses_.at(address).launching;
  }
  *out = effects;
  return CUDA_SUCCESS;
}

CUresult GraphAllocations::Back(CUgraph executable) {
  const std::lock_guard lock(driver_->mutex);
  for (const CUdeviceptr address : EffectsOf(executable).blocks) {
    if (!uses_.at(address).memory->Back(address)) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

void GraphAllocations::Launched(const MemoryEffects& effects, Context* context, uint64_t mark) {
  const auto note = [&](CUdeviceptr address, bool live) {
    const auto found = uses_.find(address);
    if (found == uses_.end()) return;  // freed by another thread in between
    Use& use = found->second;
    --use.launching;
    if (mark == 0) return;
    std::erase_if(use.marks, [&](const auto& m) {
      return m.first == context && MarkStream(m.second) == MarkStream(mark);
    });
    use.marks.emplace_back(context, mark);
    use.live = live;
  };
  for (const CUdeviceptr address : effects.blocks) note(address, effects.left.contains(address));
  for (const CUdeviceptr address : effects.foreign) note(address, false);
  if (!effects.foreign.empty()) Sweep();
}

CUresult GraphAllocations::Free(CUdeviceptr address, Context* context,
                                const std::vector<uint64_t>& marks) {
  const auto found = uses_.find(address);
  if (found == uses_.end() || !found->second.live) return CUDA_ERROR_INVALID_VALUE;
  found->second.live = false;
  for (const uint64_t mark : marks) found->second.marks.emplace_back(context, mark);
  Sweep();
  return CUDA_SUCCESS;
}

/// Whether no launch and nothing before a free can touch the block any more. The driver's lock is
/// held.
bool GraphAllocations::Idle(Use* use) {
  std::erase_if(use->marks, [](const auto& m) {
    return m.first->destroyed() || m.first->queue().Done(MarkStream(m.second), MarkId(m.second));
  });
  return !use->live && use->marks.empty() && use->launching == 0;
}

void GraphAllocations::Sweep() {
  const std::lock_guard lock(driver_->mutex);
  for (auto it = uses_.begin(); it != uses_.end();) {
    auto& [address, use] = *it;
    bool executable = false;
    for (const auto& [serial, exec] : use.holders) executable = executable || exec;
    if (executable || !Idle(&use)) {
      ++it;
      continue;
    }
    use.memory->Unback(address);
    if (!use.holders.empty()) {
      ++it;
      continue;
    }
    use.memory->Remove(address);
    it = uses_.erase(it);
  }
}

void GraphAllocations::Trim(const Device* device) {
  Sweep();
  const std::lock_guard lock(driver_->mutex);
  for (auto& [address, use] : uses_) {
    if (use.memory == device->graph_memory.get() && Idle(&use)) use.memory->Unback(address);
  }
  device->graph_memory->DropKept();
}

}  // namespace sluice::simgpu
