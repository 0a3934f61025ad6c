// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/memory/graph_memory.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sluice::simgpu {
namespace {

ControlRequest Request(ControlOp op, uint64_t address, uint64_t bytes, uint64_t access = 0,
                       int home = 0) {
  ControlRequest request{};
  request.op = op;
  request.a = address;
  request.b = bytes;
  request.c = access;
  request.d = static_cast<uint64_t>(home);
  return request;
}

}  // namespace

uint64_t GraphMemory::Rounded(uint64_t bytes) const {
  const uint64_t step = gpu_->machine().granularity;
  return (bytes + step - 1) / step * step;
}

std::optional<uint64_t> GraphMemory::Reserve(uint64_t bytes) {
  if (bytes == 0 || bytes > gpu_->page()->capacity) return std::nullopt;
  bytes = Rounded(bytes);
  const std::optional<uint64_t> address = space_->Reserve(bytes, gpu_->machine().granularity);
  if (address) blocks_[*address] = {bytes, next_serial_++, UniqueFd()};
  return address;
}

void GraphMemory::Remove(uint64_t address) {
  Unback(address);
  const auto found = blocks_.find(address);
  space_->Free(address, found->second.bytes);
  blocks_.erase(found);
}

bool GraphMemory::Back(uint64_t address) {
  Entry& block = blocks_.at(address);
  if (block.memory.valid()) return true;
  UniqueFd memory;
  const auto kept = kept_.find(block.bytes);
  if (kept != kept_.end()) {
    memory = std::move(kept->second);
    kept_.erase(kept);
  } else {
    Result<UniqueFd> made = gpu_->CreateMemory(block.bytes, payer_);
    if (!made.ok()) {
      // What is kept has another size, but the GPU can make use of it.
      DropKept();
      made = gpu_->CreateMemory(block.bytes, payer_);
    }
    if (!made.ok()) return false;
    memory = std::move(*made);
    reserved_ += block.bytes;
    reserved_high_ = std::max(reserved_high_, reserved_);
  }
  const bool mapped =
      executors_->CallAll(Request(ControlOp::kMapMemory, address, block.bytes, 0, ordinal_),
                          memory.get()) == CUDA_SUCCESS &&
      executors_->CallOn(ordinal_, Request(ControlOp::kProtect, address, block.bytes,
                                           CU_MEM_ACCESS_FLAGS_PROT_READWRITE)) == CUDA_SUCCESS;
  block.memory = std::move(memory);
  used_ += block.bytes;
  used_high_ = std::max(used_high_, used_);
  if (!mapped) Unback(address);
  return mapped;
}

void GraphMemory::Unback(uint64_t address) {
  Entry& block = blocks_.at(address);
  if (!block.memory.valid()) return;
  static_cast<void>(executors_->CallAll(Request(ControlOp::kUnmapMemory, address, block.bytes)));
  kept_.emplace(block.bytes, std::move(block.memory));
  used_ -= block.bytes;
}

void GraphMemory::DropKept() {
  for (auto& [bytes, memory] : kept_) {
    memory.reset();
    gpu_->Uncharge(bytes, payer_);
    reserved_ -= bytes;
  }
  kept_.clear();
}

std::optional<GraphMemory::Block> GraphMemory::Find(uint64_t address) const {
  auto found = blocks_.upper_bound(address);
  if (found == blocks_.begin()) return std::nullopt;
  --found;
  if (address - found->first >= found->second.bytes) return std::nullopt;
  return Block{found->first, found->second.bytes, found->second.serial};
}

CUresult GraphMemory::Replay(ExecutorLink* link, int ordinal) const {
  for (const auto& [address, block] : blocks_) {
    if (!block.memory.valid()) continue;
    const auto mapped = link->Call(
        Request(ControlOp::kMapMemory, address, block.bytes, 0, ordinal_), block.memory.get());
    if (mapped.result != CUDA_SUCCESS) return static_cast<CUresult>(mapped.result);
    if (ordinal != ordinal_) continue;
    const auto opened = link->Call(
        Request(ControlOp::kProtect, address, block.bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    if (opened.result != CUDA_SUCCESS) return static_cast<CUresult>(opened.result);
  }
  return CUDA_SUCCESS;
}

}  // namespace sluice::simgpu
