// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/driver/context_limits.h"

#include <algorithm>

#include "simgpu/driver/driver.h"

/// The part of Context that keeps room for printf and malloc in kernels.
namespace sluice::simgpu {

CUresult Context::Reserve(size_t fifo_bytes, size_t heap_bytes, size_t* field, size_t value) {
  GpuState* gpu = device_->gpu();
  if (std::max(fifo_bytes, heap_bytes) > gpu->page()->capacity) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t granularity = gpu->machine().granularity;
  const uint64_t beyond = std::max(fifo_bytes, kDefaultFifoBytes) - kDefaultFifoBytes +
                          std::max(heap_bytes, kDefaultHeapBytes) - kDefaultHeapBytes;
  const uint64_t wanted = (beyond + granularity - 1) / granularity * granularity;
  if (wanted > limits.reserved) {
    const uint64_t bytes = wanted - limits.reserved;
    const Payer payer = device_->use.PayerFor(Family::kContext);
    Result<UniqueFd> memory = gpu->CreateMemory(bytes, payer);
    if (!memory.ok()) return CUDA_ERROR_OUT_OF_MEMORY;
    // In the executor, so that it ends with it even if a forked child of the client lives on.
    const std::optional<uint64_t> at = driver_->space.Reserve(bytes, granularity);
    ControlRequest request{};
    request.op = ControlOp::kMapMemory;
    request.a = at.value_or(0);
    request.b = bytes;
    request.d = static_cast<uint64_t>(device_->ordinal());
    if (!at || link_->Call(request, memory->get()).result != CUDA_SUCCESS) {
      if (at) driver_->space.Free(*at, bytes);
      gpu->Uncharge(bytes, payer);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    gpu->CountRequested(static_cast<int64_t>(bytes), payer);
    limits.pieces.emplace_back(*at, bytes);
    limits.reserved = wanted;
  }
  *field = value;
  return CUDA_SUCCESS;
}

/// The executor, which held the bytes, is gone.
void Context::EndReserve() {
  const Payer payer = device_->use.PayerFor(Family::kContext);
  for (const auto& [address, bytes] : limits.pieces) driver_->space.Free(address, bytes);
  device_->gpu()->CountRequested(-static_cast<int64_t>(limits.reserved), payer);
  device_->gpu()->Uncharge(limits.reserved, payer);
  limits = {};
}

}  // namespace sluice::simgpu
