// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <cstdio>

#include "simgpu/sharing/gpu_state.h"
#include "simgpu/sharing/memory_limits.h"

/// The part of GpuState that keeps the lists of programs and executors.
namespace sluice::simgpu {
namespace {

void ClearBytes(ProcessEntry* entry) {
  entry->bytes_now.store(0);
  for (FamilyBytes& family : entry->family) {
    family.requested.store(0);
    family.held.store(0);
  }
}

}  // namespace

void GpuState::ReapLocked() {
  for (ExecutorEntry& e : page_->executor) {
    if (e.used != 0 && ProcessGone(e.id)) e.used = 0;
  }
  for (ProcessEntry& p : page_->process) {
    if (p.state != ProcessEntry::kRunning || !ProcessGone(p.id)) continue;
    // Its bytes count until its executors are gone too: they still map them.
    const bool held =
        std::any_of(std::begin(page_->executor), std::end(page_->executor),
                    [&p](const ExecutorEntry& e) { return e.used != 0 && e.client == p.id; });
    if (held) continue;
    p.state = ProcessEntry::kFinished;
    p.order = ++page_->finished_counter;
    ClearBytes(&p);
  }
}

void GpuState::Reap() {
  StateLock lock(page_);
  ReapLocked();
}

uint32_t GpuState::RegisterProcess(const ProcessId& id, const std::string& name, bool draws) {
  ShowLife();
  StateLock lock(page_);
  ReapLocked();
  uint32_t chosen = kNobody;
  uint32_t finished = 0;
  uint32_t oldest = kNobody;
  for (uint32_t i = 0; i < kMaxProcesses; ++i) {
    const ProcessEntry& p = page_->process[i];
    if (p.state == ProcessEntry::kRunning && p.id == id) return i;
    if (p.state == ProcessEntry::kFree && chosen == kNobody) chosen = i;
    if (p.state != ProcessEntry::kFinished) continue;
    ++finished;
    if (oldest == kNobody || p.order < page_->process[oldest].order) oldest = i;
  }
  if (chosen == kNobody || finished >= kMaxFinished) chosen = oldest;
  if (chosen == kNobody) return kNobody;
  ProcessEntry& entry = page_->process[chosen];
  entry.state = ProcessEntry::kRunning;
  entry.id = id;
  snprintf(entry.name, sizeof entry.name, "%s", name.c_str());
  entry.draws = draws ? 1 : 0;
  entry.memory_group = MemoryGroupOfSelf();
  entry.kernels.store(0);
  entry.busy_ns.store(0);
  ClearBytes(&entry);
  entry.bytes_peak.store(0);
  return chosen;
}

uint32_t GpuState::RegisterExecutor(const ProcessId& executor, const ProcessId& client,
                                    uint32_t process) {
  ShowLife();
  StateLock lock(page_);
  ReapLocked();
  for (uint32_t i = 0; i < kMaxExecutors; ++i) {
    ExecutorEntry& entry = page_->executor[i];
    // An index that still owns the token belongs to a dead executor that nobody has skipped yet;
    // reusing it would make a stranger the owner.
    if (entry.used != 0 || page_->owner == i) continue;
    entry.used = 1;
    entry.ticket = 0;
    entry.id = executor;
    entry.client = client;
    entry.process = process;
    entry.grant.store(0);
    return i;
  }
  return kNobody;
}

}  // namespace sluice::simgpu
