// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/streams/virtual_executor.h"

#include "simgpu/sharing/futex.h"
#include "simgpu/sharing/virtual_turns.h"
#include "simgpu/streams/virtual_host.h"

namespace sluice::simgpu {

std::unique_ptr<VirtualExecutor> VirtualExecutor::Attach(const GpuState* gpu, uint32_t executor,
                                                         const ProcessId& client,
                                                         const Channel* channel) {
  StatePage* page = gpu->page();
  const StateLock lock(page);
  const std::optional<uint32_t> rank = RankOf(page->time, client);
  if (!rank) return nullptr;
  // The place may be that of an executor that died.
  Detach(&page->time, &page->fluid, executor, NowNs(page->fluid));
  sluice::simgpu::Attach(&page->time, executor, *rank);
  page->context_bell[executor].store(0);
  return std::unique_ptr<VirtualExecutor>(new VirtualExecutor(gpu, executor, channel));
}

uint64_t VirtualExecutor::Now() const {
  const StateLock lock(gpu_->page());
  return NowNs(gpu_->page()->fluid);
}

void VirtualExecutor::AwaitTurn() { AwaitBell(*gpu_, &gpu_->page()->context_bell[me_]); }

void VirtualExecutor::Yield(const Rest& rest) {
  StatePage* page = gpu_->page();
  {
    const StateLock lock(page);
    const uint64_t now = NowNs(page->fluid);
    for (VirtualWait& wait : page->time.wait) {
      const bool here = wait.kind == VirtualWait::kOperation || wait.kind == VirtualWait::kFinished;
      if (here && wait.executor == me_ && VirtualHost::Over(wait, *channel_)) MakeReady(&wait, now);
    }
    EndTurn(&page->time, me_, rest, now);
    PassOnLocked(*gpu_);
  }
  AwaitTurn();
}

}  // namespace sluice::simgpu
