// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/device_token.h"

#include <algorithm>
#include <cerrno>

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
  page->slice_ns = 0;
  const int32_t pid = page->executor[me_].client.pid;
  if (page->last_pid != 0 && page->last_pid != pid) ++page->token_switches;
  page->last_pid = pid;
}

/// The owner (this executor, or a dead one) steps down: the first waiter that still lives is next.
void DeviceToken::PassOnLocked() {
  StatePage* page = gpu_->page();
  page->op_started_real_ns = 0;
  while (page->waiting_count > 0) {
    const uint32_t next = page->waiting[0];
    --page->waiting_count;
    std::copy(page->waiting + 1, page->waiting + 1 + page->waiting_count, page->waiting);
    ExecutorEntry& entry = page->executor[next];
    if (entry.used == 0 || ProcessGone(entry.id)) continue;
    page->owner = next;
    entry.grant.store(1);
    FutexWakeAll(&entry.grant);
    return;
  }
  page->owner = kNobody;
  page->busy = 0;
  page->real_mark_ns = MonotonicNs();
}

void DeviceToken::Acquire() {
  StatePage* page = gpu_->page();
  std::atomic<uint32_t>& grant = page->executor[me_].grant;
  {
    StateLock lock(page);
    if (page->owner != kNobody && ProcessGone(page->executor[page->owner].id)) PassOnLocked();
    if (page->owner == kNobody) {
      TakeLocked();
      held_ = true;
      return;
    }
    grant.store(0);
    page->waiting[page->waiting_count++] = me_;
  }
  while (grant.load() == 0) {
    FutexWait(&grant, 0, kOwnerCheckNs);
    if (grant.load() != 0) break;
    StateLock lock(page);
    if (page->owner == kNobody || ProcessGone(page->executor[page->owner].id)) PassOnLocked();
  }
  StateLock lock(page);
  TakeLocked();
  held_ = true;
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
    if (page->waiting_count == 0 || page->slice_ns < gpu_->machine().quantum_ns) return;
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
