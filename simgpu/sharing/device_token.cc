// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/device_token.h"

#include <algorithm>
#include <cerrno>

#include "simgpu/sharing/fluid_device.h"
#include "simgpu/sharing/futex.h"

namespace sluice::simgpu {
namespace {

constexpr uint64_t kOwnerCheckNs = 10'000'000;
/// How late an operation may end without the next one being held back less: sleeping is imprecise,
/// and what one sleep overshoots the next makes good.
constexpr uint64_t kPaceSlackNs = 200'000;

uint64_t Elapsed(uint64_t since, const Machine& machine) {
  const uint64_t now = MonotonicNs();
  if (now <= since) return 0;
  return static_cast<uint64_t>(static_cast<double>(now - since) / machine.time_scale);
}

}  // namespace

uint64_t DeviceClockNs(const GpuState& gpu) {
  StatePage* page = gpu.page();
  StateLock lock(page);
  if (gpu.machine().overlaps() || gpu.machine().virtual_time) return FluidClockLocked(gpu);
  if (page->busy == 0) return page->clock_ns + Elapsed(page->real_mark_ns, gpu.machine());
  if (page->op_started_real_ns == 0) return page->clock_ns;
  return page->clock_ns +
         std::min(page->op_declared_ns, Elapsed(page->op_started_real_ns, gpu.machine()));
}

/// The page's owner becomes this executor.
void DeviceToken::TakeLocked() {
  StatePage* page = gpu_->page();
  if (page->busy == 0) {
    page->clock_ns += Elapsed(page->real_mark_ns, gpu_->machine());
    page->busy = 1;
  }
  page->owner = me_;
  page->executor[me_].ticket = 0;
  page->slice_ns = 0;
  const int32_t pid = page->executor[me_].client.pid;
  if (page->last_pid != 0 && page->last_pid != pid) ++page->token_switches;
  page->last_pid = pid;
}

/// The executor that has waited longest and still lives, or kNobody.
uint32_t DeviceToken::NextWaiterLocked() const {
  const StatePage* page = gpu_->page();
  for (uint64_t after = 0;;) {
    uint32_t next = kNobody;
    for (uint32_t i = 0; i < kMaxExecutors; ++i) {
      const ExecutorEntry& entry = page->executor[i];
      if (entry.used == 0 || entry.ticket <= after) continue;
      if (next == kNobody || entry.ticket < page->executor[next].ticket) next = i;
    }
    if (next == kNobody || !ProcessGone(page->executor[next].id)) return next;
    after = page->executor[next].ticket;
  }
}

/// The owner (this executor, or a dead one) steps down: the first waiter that still lives is next.
void DeviceToken::PassOnLocked() {
  StatePage* page = gpu_->page();
  page->op_started_real_ns = 0;
  const uint32_t next = NextWaiterLocked();
  page->owner = next;
  if (next != kNobody) {
    page->executor[next].grant.store(1);
    FutexWakeAll(&page->executor[next].grant);
    return;
  }
  page->busy = 0;
  page->real_mark_ns = MonotonicNs();
}

void DeviceToken::Acquire() {
  StatePage* page = gpu_->page();
  ExecutorEntry& mine = page->executor[me_];
  for (;;) {
    {
      StateLock lock(page);
      if (page->owner != kNobody && page->owner != me_ &&
          ProcessGone(page->executor[page->owner].id)) {
        PassOnLocked();
      }
      if (page->owner == me_ || (page->owner == kNobody && NextWaiterLocked() == kNobody)) {
        TakeLocked();
        held_ = true;
        return;
      }
      if (page->owner == kNobody) {
        // Whoever stepped down was killed before it named the next one.
        PassOnLocked();
        continue;
      }
      mine.grant.store(0);
      if (mine.ticket == 0) mine.ticket = ++page->next_ticket;
    }
    FutexWait(&mine.grant, 0, kOwnerCheckNs);
  }
}

void DeviceToken::Release() {
  if (!held_) return;
  StateLock lock(gpu_->page());
  PassOnLocked();
  held_ = false;
}

void DeviceToken::YieldIfDue() {
  StatePage* page = gpu_->page();
  if (!held_) return;
  {
    StateLock lock(page);
    if (page->slice_ns < gpu_->machine().quantum_ns || NextWaiterLocked() == kNobody) return;
    PassOnLocked();
    held_ = false;
  }
  // The caller asks again when it wants the next turn and then stands behind all present waiters.
}

void DeviceToken::BeginOperation(uint64_t declared_ns) {
  StatePage* page = gpu_->page();
  const uint64_t now = MonotonicNs();
  declared_ns_ = declared_ns;
  if (now > pace_ns_ + kPaceSlackNs)
    pace_ns_ = now;  // idle or overrun in between: nothing to repay
  pace_ns_ += static_cast<uint64_t>(static_cast<double>(declared_ns) * gpu_->machine().time_scale);
  StateLock lock(page);
  if (page->first_start_ns == UINT64_MAX) page->first_start_ns = page->clock_ns;
  page->op_started_real_ns = now;
  page->op_declared_ns = declared_ns;
}

void DeviceToken::EndOperation(bool is_kernel) {
  StatePage* page = gpu_->page();
  while (MonotonicNs() < pace_ns_) {
    const timespec until{static_cast<time_t>(pace_ns_ / 1'000'000'000),
                         static_cast<long>(pace_ns_ % 1'000'000'000)};
    if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != EINTR) break;
  }
  StateLock lock(page);
  page->op_started_real_ns = 0;
  page->clock_ns += declared_ns_;
  page->busy_ns += declared_ns_;
  page->slice_ns += declared_ns_;
  page->last_end_ns = page->clock_ns;
  ProcessEntry& process = page->process[page->executor[me_].process];
  process.busy_ns.fetch_add(declared_ns_);
  if (is_kernel) {
    ++page->kernels;
    process.kernels.fetch_add(1);
  }
}

}  // namespace sluice::simgpu
