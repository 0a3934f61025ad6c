// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/driver/peer_copy.h"

#include "simgpu/driver/allocation.h"

namespace sluice::simgpu {
namespace {

/// The GPU that memory at a device address lies on.
std::optional<int> GpuOf(Context* context, uint64_t address) {
  if (!IsDeviceAddress(address)) return std::nullopt;
  const std::optional<Allocation> found = FindAllocation(context->driver(), context, address);
  if (!found) return std::nullopt;
  return found->device;
}

/// Waits for all contexts for which `concerned` holds; the first failure counts.
template <typename F>
CUresult FinishThose(Driver* driver, F concerned) {
  // They are never deleted.
  std::vector<Context*> contexts;
  {
    const std::lock_guard lock(driver->mutex);
    for (const auto& context : driver->contexts) {
      if (!context->destroyed() && concerned(*context)) contexts.push_back(context.get());
    }
  }
  CUresult result = CUDA_SUCCESS;
  for (Context* context : contexts) {
    const CUresult finished = FinishAll(context);
    if (result == CUDA_SUCCESS) result = finished;
  }
  return result;
}

}  // namespace

CUresult ContextOfCopy(CUstream handle, Context** out) {
  const CUresult result = CurrentContext(out);
  if (result != CUDA_SUCCESS || handle <= CU_STREAM_PER_THREAD || !IsLive(handle)) return result;
  *out = handle->context;
  return (*out)->destroyed() ? CUDA_ERROR_CONTEXT_IS_DESTROYED : (*out)->queue().error();
}

bool BetweenGpus(Context* context, uint64_t target, uint64_t source) {
  if (context->driver()->devices.size() == 1) return false;
  const std::optional<int> to = GpuOf(context, target);
  const std::optional<int> from = GpuOf(context, source);
  return to && from && *to != *from;
}

CUresult FinishGpusOf(Context* context, uint64_t target, uint64_t source) {
  const std::optional<int> to = GpuOf(context, target);
  const std::optional<int> from = GpuOf(context, source);
  return FinishThose(context->driver(), [&](const Context& other) {
    const int ordinal = other.device()->ordinal();
    return ordinal == to || ordinal == from;
  });
}

void FinishUsersOf(Context* context) {
  const std::set<const ExecutorLink*> users = context->driver()->views.UsersOf(context->link());
  if (users.empty()) return;
  // That another one failed is not this context's affair.
  static_cast<void>(FinishThose(
      context->driver(), [&](const Context& other) { return users.contains(other.link()); }));
}

}  // namespace sluice::simgpu
