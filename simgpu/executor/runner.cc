// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/executor/runner.h"

#include <algorithm>

#include "simgpu/executor/faults.h"
#include "simgpu/sharing/futex.h"

namespace sluice::simgpu {
namespace {

constexpr uint64_t kShortestPollNs = 20'000;
constexpr uint64_t kLongestPollNs = 500'000;
constexpr uint64_t kIdleSleepNs = 1'000'000'000;

bool CostsTime(const Command& command) {
  return command.kind == CommandKind::kKernel || command.kind == CommandKind::kCopy ||
         command.kind == CommandKind::kMemset;
}

}  // namespace

Runner::Runner(GpuState* gpu, uint32_t executor, Channel* channel, Mappings* mappings,
               Modules* modules)
    : gpu_(gpu), channel_(channel), mappings_(mappings), modules_(modules), token_(gpu, executor) {}

void Runner::Run() {
  const StreamQueues::Ready ready = [this](const Command& c) { return failed() || Ready(c); };
  const StreamQueues::Ready costs = [this](const Command& c) { return !failed() && CostsTime(c); };
  for (;;) {
    Ingest();
    const Command* next = queues_.Pick(ready, costs);
    if (next == nullptr) {
      token_.Release();
      Sleep();
      continue;
    }
    poll_ns_ = 0;
    if (costs(*next) && !token_.held()) {
      token_.Acquire();
      continue;  // it may have taken long: an earlier operation may be runnable by now
    }
    const Command command = *next;
    if (!failed()) Execute(command);
    Complete(command);
    token_.YieldIfDue();
  }
}

void Runner::Ingest() {
  const uint64_t end = channel_->submitted.load(std::memory_order_acquire);
  while (ingested_ < end) {
    const Command& command = channel_->Slot(++ingested_);
    if (command.stream < kStreams) queues_.Push(command);
  }
}

/// Until the client rings, or a little while if some stream waits for a value in memory.
void Runner::Sleep() {
  uint64_t timeout = kIdleSleepNs;
  if (!queues_.empty()) {
    poll_ns_ = std::clamp(poll_ns_ * 2, kShortestPollNs, kLongestPollNs);
    timeout = poll_ns_;
  }
  const uint32_t bell = channel_->doorbell.load();
  channel_->sleeping.store(1);
  // The client stores `submitted` and then reads `sleeping`; this side does the reverse.
  if (channel_->submitted.load() == ingested_) FutexWait(&channel_->doorbell, bell, timeout);
  channel_->sleeping.store(0);
}

bool Runner::Ready(const Command& command) {
  switch (command.kind) {
    case CommandKind::kWaitEvent:
      return command.wait_event.stream >= kStreams ||
             channel_->completed[command.wait_event.stream].load(std::memory_order_relaxed) >=
                 command.wait_event.id;
    case CommandKind::kWaitValue: {
      struct Look {
        const uint64_t* address;
        uint64_t value;
      } look{reinterpret_cast<const uint64_t*>(mappings_->Resolve(command.value.address, 8)), 0};
      CUresult result = CUDA_ERROR_ILLEGAL_ADDRESS;
      if (look.address != nullptr) {
        result = RunGuarded(
            "cuStreamWaitValue64",
            [](void* p) {
              auto* l = static_cast<Look*>(p);
              l->value = __atomic_load_n(l->address, __ATOMIC_ACQUIRE);
            },
            &look);
      }
      if (result != CUDA_SUCCESS) {
        Fail(result);
        return true;
      }
      return command.value.equal != 0 ? look.value == command.value.value
                                      : static_cast<int64_t>(look.value - command.value.value) >= 0;
    }
    case CommandKind::kHostFunction:
      if (host_function_ != command.id) {
        if (host_function_ != 0) return false;  // one at a time
        host_function_ = command.id;
        channel_->host_function.store(command.id);
        channel_->host_function_bell.fetch_add(1);
        FutexWakeAll(&channel_->host_function_bell);
      }
      return channel_->host_function_done.load(std::memory_order_acquire) >= command.id;
    default:
      return true;
  }
}

void Runner::Execute(const Command& command) {
  CUresult result = CUDA_SUCCESS;
  switch (command.kind) {
    case CommandKind::kKernel:
      result = RunKernel(command);
      break;
    case CommandKind::kCopy:
      result = RunCopy(command);
      break;
    case CommandKind::kMemset:
      result = RunMemset(command);
      break;
    case CommandKind::kWriteValue:
      result = WriteValue(command);
      break;
    case CommandKind::kRecordEvent:
      RecordEvent(command);
      break;
    case CommandKind::kHostFunction:
      host_function_ = 0;
      break;
    case CommandKind::kWaitEvent:
    case CommandKind::kWaitValue:
      break;
  }
  if (result != CUDA_SUCCESS) Fail(result);
}

void Runner::Complete(const Command& command) {
  queues_.Pop(command.stream);
  channel_->completed[command.stream].store(command.id, std::memory_order_release);
  channel_->finished.fetch_add(1, std::memory_order_release);
  channel_->progress.fetch_add(1);
  if (channel_->waiters.load() != 0) FutexWakeAll(&channel_->progress);
}

void Runner::Fail(CUresult error) {
  uint32_t none = 0;
  channel_->error.compare_exchange_strong(none, error);
}

}  // namespace sluice::simgpu
