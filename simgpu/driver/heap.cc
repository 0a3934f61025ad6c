// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/driver/heap.h"

#include <algorithm>

namespace sluice::simgpu {
namespace {

/// Addresses cost nothing: a window of several times the memory makes its fragmentation irrelevant.
constexpr uint64_t kWindowFactor = 4;

uint64_t Chunk(const GpuState& gpu) {
  return std::max<uint64_t>(gpu.machine().granularity, 2u << 20);
}

}  // namespace

uint64_t Heap::WindowBytes(const GpuState& gpu) {
  const uint64_t chunk = Chunk(gpu);
  return (gpu.page()->capacity * kWindowFactor + chunk - 1) / chunk * chunk;
}

std::unique_ptr<Heap> Heap::Create(const DeviceUse& home, Family family, AddressSpace* space,
                                   HeapViews* views, ExecutorLink* owner,
                                   const BlockPool::Order* order, Window window) {
  const uint64_t bytes = WindowBytes(*home.gpu);
  const std::optional<uint64_t> base = space->Reserve(bytes, Chunk(*home.gpu));
  if (!base) return nullptr;
  if (!window.shared) {
    Result<UniqueFd> file = home.gpu->CreateSparse(bytes);
    if (file.ok()) window.file = std::move(*file);
  }
  const HeapViews::Place place{*base, bytes, window.file.get(), window.offset, home.ordinal};
  if (!window.file.valid() || views->Publish(place, owner, window.access) != CUDA_SUCCESS) {
    views->Withdraw(*base);
    space->Free(*base, bytes);
    return nullptr;
  }
  return std::unique_ptr<Heap>(
      new Heap(home, family, space, views, std::move(window), *base, bytes, order));
}

Heap::~Heap() {
  views_->Withdraw(base_);
  gpu_->CountRequested(-static_cast<int64_t>(pool_.requested()), payer_);
  if (window_.shared) gpu_->Discard(file(), window_.offset, bytes_);
  gpu_->Uncharge(pool_.reserved(), payer_);
  space_->Free(base_, bytes_);
}

/// What a change of the pool does to the count in the state page.
void Heap::CountRequested(uint64_t before) {
  const auto change = static_cast<int64_t>(pool_.requested() - before);
  if (change != 0) gpu_->CountRequested(change, payer_);
}

std::optional<uint64_t> Heap::Alloc(uint64_t bytes, uint32_t stream) {
  const uint64_t before = pool_.requested();
  const std::optional<uint64_t> offset = pool_.Alloc(bytes, stream);
  CountRequested(before);
  if (!offset) return std::nullopt;
  return base_ + *offset;
}

bool Heap::Free(uint64_t address, const StreamMark& mark) {
  const uint64_t before = pool_.requested();
  const bool freed = pool_.Free(address - base_, mark);
  CountRequested(before);
  return freed;
}

std::optional<BlockPool::Block> Heap::Find(uint64_t address) const {
  std::optional<BlockPool::Block> block = pool_.Find(address - base_);
  if (block) block->offset += base_;
  return block;
}

bool Heap::Grow(uint64_t offset, uint64_t bytes) {
  if (bytes > window_.limit || pool_.reserved() > window_.limit - bytes) return false;
  if (!gpu_->Back(file(), window_.offset + offset, bytes, payer_).ok()) return false;
  if (views_->Back(base_, offset, bytes) == CUDA_SUCCESS) return true;
  gpu_->Drop(file(), window_.offset + offset, bytes, payer_);
  return false;
}

void Heap::Shrink(uint64_t offset, uint64_t bytes) {
  views_->Unback(base_, offset, bytes);
  gpu_->Drop(file(), window_.offset + offset, bytes, payer_);
}

}  // namespace sluice::simgpu
