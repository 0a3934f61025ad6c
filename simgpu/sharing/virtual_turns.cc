// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/virtual_turns.h"

#include <algorithm>
#include <cstdio>

#include "simgpu/sharing/futex.h"

namespace sluice::simgpu {
namespace {

/// Twenty looks are 200 ms: a program that computes is never seen asleep that long.
constexpr uint32_t kQuietLooks = 20;

constexpr uint32_t kLooksBeforeSaying = 1000;  // 10 s

void Ring(std::atomic<uint32_t>* bell) {
  bell->store(1, std::memory_order_release);
  FutexWakeAll(bell);
}

/// The participant that others wait for while it is not in the driver: it has the turn, or it has a
/// host function to return from.
std::optional<uint32_t> Awaited(const StatePage& page) {
  const VirtualTime& time = page.time;
  if (time.turn.holder == Turn::kNobody) {
    for (const VirtualContext& context : time.context) {
      if (context.present != 0 && context.function_out != 0) return context.rank;
    }
  }
  if (time.turn.holder != Turn::kHost || Waits(time, time.turn.index)) return std::nullopt;
  for (uint32_t i = 0; i < kFluidContexts; ++i) {
    const VirtualContext& context = time.context[i];
    if (context.present == 0) continue;
    if (context.awake != 0 || context.next_arrival_ns != kNoArrival) return time.turn.index;
    const auto& ops = page.fluid.op[i];
    if (std::any_of(std::begin(ops), std::end(ops),
                    [](const FluidOp& op) { return op.state != FluidOp::kFree; })) {
      return time.turn.index;
    }
  }
  const bool others =
      std::any_of(std::begin(time.wait), std::end(time.wait), [](const VirtualWait& wait) {
        return wait.kind != VirtualWait::kFree && wait.kind != VirtualWait::kGranted;
      });
  return others ? std::optional(time.turn.index) : std::nullopt;
}

}  // namespace

void PassOnLocked(const GpuState& gpu) {
  StatePage* page = gpu.page();
  const FluidRules rules = RulesOf(gpu.machine());
  const uint64_t switches = page->fluid.switches;
  for (;;) {
    const Grant grant = PassOn(&page->time, &page->fluid, rules);
    if (grant.kind == Grant::kNone) break;
    Ring(grant.kind == Grant::kWait ? &page->wait_bell[grant.index]
                                    : &page->context_bell[grant.index]);
  }
  page->token_switches += page->fluid.switches - switches;
  page->busy_ns = static_cast<uint64_t>(page->fluid.busy_ns);
}

void ReapVirtualLocked(const GpuState& gpu) {
  StatePage* page = gpu.page();
  VirtualTime& time = page->time;
  for (uint32_t i = 0; i < kFluidContexts; ++i) {
    const ExecutorEntry& entry = page->executor[i];
    if (time.context[i].present == 0 || (entry.used != 0 && !ProcessGone(entry.id))) continue;
    Detach(&time, &page->fluid, i, NowNs(page->fluid));
  }
  for (uint32_t rank = 0; rank < kMostParticipants; ++rank) {
    const Participant& participant = time.participant[rank];
    if (participant.state != Participant::kHere || !ProcessGone(participant.id)) continue;
    // Not before its executors: until then they may be in the middle of something.
    const bool alive = std::any_of(
        std::begin(page->executor), std::end(page->executor), [&](const ExecutorEntry& e) {
          return e.used != 0 && e.client == participant.id && !ProcessGone(e.id);
        });
    if (!alive) Leave(&time, rank);
  }
  PassOnLocked(gpu);
}

void AwaitBell(const GpuState& gpu, std::atomic<uint32_t>* bell) {
  StallWatch watch(&gpu);
  uint32_t looks = 0;
  while (bell->load(std::memory_order_acquire) == 0) {
    FutexWait(bell, 0, kVirtualCheckNs);
    if (bell->load(std::memory_order_acquire) != 0) break;
    {
      const StateLock lock(gpu.page());
      // Nothing can happen in virtual time: perhaps somebody outside of it wrote to memory.
      if (gpu.page()->time.turn.holder == Turn::kNobody) LookOutside(&gpu.page()->time);
      ReapVirtualLocked(gpu);
      if (++looks == kLooksBeforeSaying && gpu.page()->time.open == 0) {
        fprintf(stderr,
                "simulated GPU: waiting until all %u participants in virtual time are here\n",
                gpu.page()->time.expected);
      }
    }
    watch.Look();
  }
  bell->store(0, std::memory_order_relaxed);
}

void StallWatch::Look() {
  StatePage* page = gpu_->page();
  ProcessId id;
  {
    const StateLock lock(page);
    const std::optional<uint32_t> rank = Awaited(*page);
    if (!rank) {
      quiet_looks_ = 0;
      return;
    }
    id = page->time.participant[*rank].id;
  }
  const std::optional<uint64_t> cpu = SleepingProcessCpu(id.pid);
  if (!cpu || !(id == watched_) || *cpu != cpu_) {
    watched_ = id;
    cpu_ = cpu.value_or(0);
    quiet_looks_ = 0;
    return;
  }
  if (++quiet_looks_ < kQuietLooks) return;
  quiet_looks_ = 0;
  const StateLock lock(page);
  const std::optional<uint32_t> rank = RankOf(page->time, id);
  if (!rank || Awaited(*page) != rank ||
      page->time.participant[*rank].stall != Participant::kNone) {
    return;
  }
  StallHost(&page->time, *rank);
  if (page->time.stalls == 1) {
    fprintf(stderr,
            "simulated GPU: virtual time goes on without process %d, which sleeps outside the "
            "driver: later times may differ from run to run\n",
            id.pid);
  }
  PassOnLocked(*gpu_);
}

}  // namespace sluice::simgpu
