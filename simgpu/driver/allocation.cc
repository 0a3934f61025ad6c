// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/driver/allocation.h"

#include "simgpu/driver/graph_memory_calls.h"

namespace sluice::simgpu {
namespace {

std::optional<Allocation> InContext(Context* context, uint64_t address) {
  const std::lock_guard lock(context->mutex);
  CUmemoryPool pool = nullptr;
  const Heap* heap = context->HeapAt(address, &pool);
  if (heap == nullptr) return std::nullopt;
  const std::optional<BlockPool::Block> block = heap->Find(address);
  if (!block) return std::nullopt;
  Allocation found;
  found.family = pool == nullptr ? Family::kSync : Family::kAsync;
  found.base = block->offset;
  found.bytes = block->bytes;
  found.serial = block->serial;
  found.context = context;
  found.device = pool == nullptr ? context->device()->ordinal() : pool->props.location.id;
  found.pool = pool;
  return found;
}

/// Memory that every context sees.
std::optional<Allocation> Shared(Driver* driver, uint64_t address) {
  const std::lock_guard lock(driver->mutex);
  Allocation found;
  if (const auto mapped = driver->virtual_memory->Find(address)) {
    found.family = Family::kVmm;
    found.base = mapped->address;
    found.bytes = mapped->bytes;
    found.range_base = mapped->reserved_at;
    found.range_bytes = mapped->reserved_bytes;
    found.serial = mapped->serial;
    found.device = mapped->home;
    return found;
  }
  for (const auto& device : driver->devices) {
    const auto block = device->graph_memory->Find(address);
    if (!block) continue;
    found.family = Family::kGraph;
    found.base = block->address;
    found.bytes = block->bytes;
    found.serial = block->serial;
    found.device = device->ordinal();
    return found;
  }
  if (const auto foreign = driver->foreign_memory->Find(address)) {
    const bool external = foreign->kind == ForeignMemory::Kind::kExternalBuffer;
    found.family = external ? Family::kExternal : Family::kIpc;
    found.base = foreign->address;
    found.bytes = foreign->bytes;
    found.serial = foreign->serial;
    found.device = foreign->home;
    found.foreign = foreign->kind;
    return found;
  }
  if (const auto host = driver->host_memory->Find(address)) {
    found.family = Family::kManaged;
    found.base = host->address;
    found.bytes = host->bytes;
    found.serial = host->serial;
    found.host = host;
    for (const auto& context : driver->contexts) {
      if (context->link() == host->owner) found.context = context.get();
    }
    if (found.context != nullptr) found.device = found.context->device()->ordinal();
    return found;
  }
  return std::nullopt;
}

/// They are never deleted, so the list may be used without the lock.
std::vector<Context*> Contexts(Driver* driver) {
  const std::lock_guard lock(driver->mutex);
  std::vector<Context*> contexts;
  for (const auto& context : driver->contexts) contexts.push_back(context.get());
  return contexts;
}

std::optional<Allocation> Lookup(Driver* driver, Context* first, uint64_t address) {
  if (const auto found = InContext(first, address)) return found;
  if (const auto found = Shared(driver, address)) return found;
  for (Context* context : Contexts(driver)) {
    if (context == first || context->destroyed()) continue;
    if (const auto found = InContext(context, address)) return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Allocation> FindAllocation(Driver* driver, Context* first, uint64_t address) {
  std::optional<Allocation> found = Lookup(driver, first, address);
  if (found && found->range_bytes == 0) {
    found->range_base = found->base;
    found->range_bytes = found->bytes;
  }
  return found;
}

CUresult FinishAll(Context* context) {
  std::vector<uint64_t> marks;
  {
    const std::lock_guard lock(context->mutex);
    marks = context->AllMarks();
  }
  return context->WaitFor(marks);
}

CUresult FreeShared(Context* context, const Allocation& allocation) {
  if (allocation.family == Family::kGraph) {
    std::vector<uint64_t> marks;
    {
      const std::lock_guard lock(context->mutex);
      marks = context->AllMarks();
    }
    return FreeGraphMemory(context, allocation.base, marks);
  }
  if (allocation.host) {
    if (!allocation.on_device()) return CUDA_ERROR_INVALID_VALUE;
    const CUresult finished = FinishAll(context);
    const std::lock_guard lock(context->driver()->mutex);
    const CUresult freed = context->driver()->host_memory->FreeManaged(
        reinterpret_cast<void*>(allocation.base));  // NOLINT(performance-no-int-to-ptr)
    return freed != CUDA_SUCCESS ? freed : finished;
  }
  // An opened IPC handle is closed, not freed.
  if (!allocation.foreign || *allocation.foreign == ForeignMemory::Kind::kIpcHandle) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const CUresult done = FinishAll(context);
  const std::lock_guard lock(context->driver()->mutex);
  const CUresult closed =
      context->driver()->foreign_memory->Close(allocation.base, *allocation.foreign);
  return closed != CUDA_SUCCESS ? closed : done;
}

}  // namespace sluice::simgpu
