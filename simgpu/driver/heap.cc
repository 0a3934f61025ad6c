// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/driver/heap.h"

#include <algorithm>

namespace sluice::simgpu {
namespace {

/// Addresses cost nothing: a window of several times the memory makes its fragmentation irrelevant.
constexpr uint64_t kWindowFactor = 4;

}  // namespace

std::unique_ptr<Heap> Heap::Create(GpuState* gpu, uint32_t process, AddressSpace* space,
                                   ExecutorLink* link, const BlockPool::Order* order) {
  const uint64_t chunk = std::max<uint64_t>(gpu->machine().granularity, 2u << 20);
  const uint64_t window = (gpu->page()->capacity * kWindowFactor + chunk - 1) / chunk * chunk;
  const std::optional<uint64_t> base = space->Reserve(window, chunk);
  if (!base) return nullptr;
  Result<UniqueFd> file = gpu->CreateSparse(window);
  ControlRequest request{};
  request.op = ControlOp::kMapMemory;
  request.a = *base;
  request.b = window;
  if (!file.ok() || link->Call(request, file->get()).result != CUDA_SUCCESS) {
    space->Free(*base, window);
    return nullptr;
  }
  return std::unique_ptr<Heap>(
      new Heap(gpu, process, link, std::move(*file), *base, window, order));
}

bool Heap::Protect(uint64_t offset, uint64_t bytes, unsigned access) {
  ControlRequest request{};
  request.op = ControlOp::kProtect;
  request.a = base_ + offset;
  request.b = bytes;
  request.c = access;
  return link_->Call(request).result == CUDA_SUCCESS;
}

bool Heap::Grow(uint64_t offset, uint64_t bytes) {
  if (!gpu_->Back(file_.get(), offset, bytes, process_).ok()) return false;
  if (Protect(offset, bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE)) return true;
  gpu_->Drop(file_.get(), offset, bytes, process_);
  return false;
}

void Heap::Shrink(uint64_t offset, uint64_t bytes) {
  Protect(offset, bytes, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  gpu_->Drop(file_.get(), offset, bytes, process_);
}

}  // namespace sluice::simgpu
