// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/streams/command_queue.h"

#include <iterator>

#include "simgpu/sharing/futex.h"

namespace sluice::simgpu {
namespace {

constexpr uint64_t kStagingGranule = 256;
/// A waiter looks after the executor this often, in case it died without a word.
constexpr uint64_t kExecutorCheckNs = 100'000'000;

}  // namespace

CommandQueue::CommandQueue(ExecutorLink* link, const GpuState* gpu, VirtualHost* virtual_time)
    : link_(link),
      channel_(link->channel()),
      machine_(&gpu->machine()),
      virtual_time_(virtual_time),
      launch_spin_ns_(
          static_cast<uint64_t>(static_cast<double>(machine_->launch_ns) * machine_->time_scale)) {
  free_[0] = kStagingBytes;
  if (virtual_time_ == nullptr) return;
  const StateLock lock(gpu->page());
  for (uint32_t i = 0; i < kMaxExecutors; ++i) {
    const ExecutorEntry& entry = gpu->page()->executor[i];
    if (entry.used != 0 && entry.id.pid == link->pid()) executor_ = i;
  }
}

CUresult CommandQueue::error() const {
  return static_cast<CUresult>(channel_->error.load(std::memory_order_acquire));
}

bool CommandQueue::Done(uint32_t stream, uint64_t id) const {
  return channel_->completed[stream].load(std::memory_order_acquire) >= id;
}

void CommandQueue::CheckExecutor() {
  if (link_->Alive()) return;
  uint32_t none = 0;
  channel_->error.compare_exchange_strong(none, CUDA_ERROR_LAUNCH_FAILED);
}

/// `seen` is the value of `progress` before the caller looked at what it waits for.
void CommandQueue::WaitForProgress(uint32_t seen) {
  channel_->waiters.fetch_add(1);
  const uint64_t start = MonotonicNs();
  if (channel_->progress.load() == seen) {
    FutexWait(&channel_->progress, seen, kExecutorCheckNs);
  }
  channel_->waiters.fetch_sub(1);
  if (MonotonicNs() - start >= kExecutorCheckNs) CheckExecutor();
}

bool CommandQueue::Wait(uint32_t stream, uint64_t id) {
  for (;;) {
    const uint32_t seen = channel_->progress.load();
    if (error() != CUDA_SUCCESS) return false;
    if (Done(stream, id)) return true;
    if (virtual_time_ != nullptr) {
      virtual_time_->AwaitOperation(executor_, channel_, stream, id);
      if (!Done(stream, id)) CheckExecutor();
    } else {
      WaitForProgress(seen);
    }
  }
}

/// In virtual time: until `count` operations are finished.
void CommandQueue::WaitForFinished(uint64_t count) {
  virtual_time_->AwaitFinished(executor_, channel_, count);
  if (channel_->finished.load(std::memory_order_acquire) < count) CheckExecutor();
}

void CommandQueue::FunctionReturned() {
  if (virtual_time_ != nullptr) {
    virtual_time_->FunctionReturned(executor_);
  } else {
    Ring();
  }
}

void CommandQueue::Ring() {
  if (virtual_time_ != nullptr) {
    virtual_time_->Wake(executor_);
    return;
  }
  if (channel_->sleeping.load() == 0) return;
  channel_->doorbell.fetch_add(1);
  FutexWakeAll(&channel_->doorbell);
}

uint64_t CommandQueue::Submit(Command command, Lock&) {
  if (virtual_time_ != nullptr) {
    virtual_time_->Spend(machine_->launch_ns);
  } else {
    SpinFor(launch_spin_ns_);
  }
  const uint64_t id = channel_->submitted.load(std::memory_order_relaxed) + 1;
  for (;;) {
    const uint32_t seen = channel_->progress.load();
    if (error() != CUDA_SUCCESS) return 0;
    const uint64_t outstanding = id - 1 - channel_->finished.load(std::memory_order_acquire);
    if (outstanding < machine_->launch_queue) break;
    if (virtual_time_ != nullptr) {
      WaitForFinished(id - machine_->launch_queue);
    } else {
      WaitForProgress(seen);
    }
  }
  if (virtual_time_ != nullptr) command.seen_ns = virtual_time_->Clock();
  command.id = id;
  channel_->Slot(id) = command;
  channel_->submitted.store(id);
  Ring();
  return id;
}

void CommandQueue::ReapStaged() {
  for (auto it = busy_.begin(); it != busy_.end();) {
    if (!Done(it->stream, it->id)) {
      ++it;
      continue;
    }
    uint64_t offset = it->offset;
    uint64_t bytes = taken_.at(offset);
    taken_.erase(offset);
    it = busy_.erase(it);
    auto after = free_.upper_bound(offset);
    if (after != free_.end() && after->first == offset + bytes) {
      bytes += after->second;
      after = free_.erase(after);
    }
    if (after != free_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == offset) {
        offset = before->first;
        bytes += before->second;
        free_.erase(before);
      }
    }
    free_[offset] = bytes;
  }
}

std::optional<uint64_t> CommandQueue::Stage(uint64_t bytes, Lock& held) {
  bytes = (bytes + kStagingGranule - 1) / kStagingGranule * kStagingGranule;
  for (;;) {
    const uint32_t seen = channel_->progress.load();
    if (error() != CUDA_SUCCESS) return std::nullopt;
    ReapStaged();
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (it->second < bytes) continue;
      const uint64_t offset = it->first;
      const uint64_t rest = it->second - bytes;
      free_.erase(it);
      if (rest > 0) free_[offset + bytes] = rest;
      taken_[offset] = bytes;
      return offset;
    }
    const uint64_t finished = channel_->finished.load();
    held.unlock();
    if (virtual_time_ != nullptr) {
      WaitForFinished(finished + 1);
    } else {
      WaitForProgress(seen);
    }
    held.lock();
  }
}

void CommandQueue::ReleaseStaged(uint64_t offset, uint32_t stream, uint64_t id) {
  busy_.push_back({offset, stream, id});
}

}  // namespace sluice::simgpu
