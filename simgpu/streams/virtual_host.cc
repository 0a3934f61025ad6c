// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/streams/virtual_host.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "simgpu/sharing/futex.h"
#include "simgpu/sharing/virtual_turns.h"

namespace sluice::simgpu {
namespace {

constexpr char kRankVariable[] = "SLUICE_SIMGPU_RANK";

Result<uint32_t> OwnRank(uint64_t participants) {
  const char* text = getenv(kRankVariable);
  const bool given = text != nullptr && *text != 0;
  if (!given && participants == 1) return 0u;
  uint32_t rank = UINT32_MAX;
  const char* end = given ? text + strlen(text) : text;
  if (given && std::from_chars(text, end, rank).ptr == end && rank < participants) return rank;
  return Status(StatusCode::kInvalidArgument,
                std::string(kRankVariable) + "='" + (given ? text : "") + "': allowed: 0 to " +
                    std::to_string(participants - 1) +
                    ", one of its own for each participant in virtual time");
}

/// Whether all who are still counted as here have ended.
bool RoundIsOver(const VirtualTime& time) {
  return std::none_of(
      std::begin(time.participant), std::end(time.participant),
      [](const Participant& p) { return p.state == Participant::kHere && !ProcessGone(p.id); });
}

/// Processes that are gone may still leave: their executors end a moment later.
bool AwaitMayJoin(const GpuState& gpu, uint32_t rank, int32_t* holder) {
  StatePage* page = gpu.page();
  {
    const StateLock lock(page);
    page->time.expected = static_cast<uint32_t>(gpu.machine().participants);
  }
  constexpr uint64_t kPatienceNs = 5'000'000'000;
  constexpr timespec kPause{0, 1'000'000};
  for (const uint64_t start = MonotonicNs();; nanosleep(&kPause, nullptr)) {
    const StateLock lock(page);
    ReapVirtualLocked(gpu);
    if (MayJoin(page->time, rank)) return true;
    *holder = page->time.participant[rank].id.pid;
    if (!RoundIsOver(page->time) || MonotonicNs() - start > kPatienceNs) return false;
  }
}

}  // namespace

Result<std::unique_ptr<VirtualHost>> VirtualHost::Join(const GpuState* gpu) {
  const uint64_t participants = gpu->machine().participants;
  const Result<uint32_t> rank = OwnRank(participants);
  if (!rank.ok()) return rank.status();
  int32_t holder = 0;
  if (!AwaitMayJoin(*gpu, *rank, &holder)) {
    return Status(StatusCode::kFailedPrecondition,
                  "in virtual time rank " + std::to_string(*rank) + " is that of process " +
                      std::to_string(holder) +
                      "; allowed: participants = " + std::to_string(participants) +
                      " processes, each with a rank of its own in " + kRankVariable);
  }
  StatePage* page = gpu->page();
  std::unique_ptr<VirtualHost> host(new VirtualHost(gpu, *rank));
  uint32_t place = 0;  // there is room: one wait per process that is only now joining
  {
    const StateLock lock(page);
    if (!MayJoin(page->time, *rank)) {
      return Status(StatusCode::kFailedPrecondition,
                    "in virtual time two processes want rank " + std::to_string(*rank));
    }
    sluice::simgpu::Join(&page->time, *rank, SelfProcess(), NowNs(page->fluid));
    // Whose turn it was in the round before must not matter in this one.
    page->fluid.turn = kNoTurn;
    page->fluid.slice_ns = 0;
    // At once: were the round open without this one in the row, another one would go first.
    place = BeginWait(&page->time, {VirtualWait::kTurn, *rank, 0, 0, 0, 0, 0, 0}, 0).value_or(0);
    page->wait_bell[place].store(0);
    PassOnLocked(*gpu);
  }
  AwaitBell(*gpu, &page->wait_bell[place]);
  const StateLock lock(page);
  EndWait(&page->time, place);
  return host;
}

uint64_t VirtualHost::Clock() const {
  const StateLock lock(gpu_->page());
  return gpu_->page()->time.participant[rank_].clock_ns;
}

void VirtualHost::Wait(VirtualWait wait, const Channel* channel) {
  StatePage* page = gpu_->page();
  wait.rank = rank_;
  std::optional<uint32_t> place;
  {
    const StateLock lock(page);
    wait.ready = channel != nullptr && Over(wait, *channel) ? 1 : 0;
    place = BeginWait(&page->time, wait, NowNs(page->fluid));
    if (!place) {
      fprintf(stderr, "simulated GPU: more than %u threads wait in virtual time\n", kVirtualWaits);
      abort();
    }
    page->wait_bell[*place].store(0);
    PassOnLocked(*gpu_);
  }
  AwaitBell(*gpu_, &page->wait_bell[*place]);
  const StateLock lock(page);
  EndWait(&page->time, *place);
}

/// The device went on without this process, or another participant did: back into the row.
void VirtualHost::TakeTurn() {
  {
    const StateLock lock(gpu_->page());
    const VirtualTime& time = gpu_->page()->time;
    if (time.turn == Turn{Turn::kHost, rank_} || Waits(time, rank_)) return;
  }
  VirtualWait wait{};
  wait.kind = VirtualWait::kTurn;
  Wait(wait, nullptr);
}

uint64_t VirtualHost::Spend(uint64_t ns, bool in_turn) {
  TakeTurn();
  StatePage* page = gpu_->page();
  uint64_t clock = 0;
  {
    const StateLock lock(page);
    const uint64_t now = NowNs(page->fluid);
    clock = in_turn ? sluice::simgpu::SpendInTurn(&page->time, rank_, ns, now)
                    : sluice::simgpu::Spend(&page->time, rank_, ns, now);
    if (!MustYield(page->time, rank_)) return clock;
  }
  VirtualWait wait{};
  wait.kind = VirtualWait::kTurn;
  Wait(wait, nullptr);
  return clock;
}

uint64_t VirtualHost::Spend(uint64_t ns) { return Spend(ns, false); }
void VirtualHost::SpendInTurn(uint64_t ns) { Spend(ns, true); }

void VirtualHost::Ask() {
  Spend(gpu_->machine().query_ns, false);
  VirtualWait wait{};
  wait.kind = VirtualWait::kTurn;
  Wait(wait, nullptr);
}

bool VirtualHost::Over(const VirtualWait& wait, const Channel& channel) {
  if (channel.error.load(std::memory_order_acquire) != 0) return true;
  if (wait.kind == VirtualWait::kFinished) {
    return channel.finished.load(std::memory_order_acquire) >= wait.target;
  }
  return channel.completed[wait.stream].load(std::memory_order_acquire) >= wait.target;
}

void VirtualHost::AwaitOperation(uint32_t executor, const Channel* channel, uint32_t stream,
                                 uint64_t id) {
  Wait({VirtualWait::kOperation, rank_, 0, executor, stream, id, 0, 0}, channel);
}

void VirtualHost::AwaitFinished(uint32_t executor, const Channel* channel, uint64_t count) {
  Wait({VirtualWait::kFinished, rank_, 0, executor, 0, count, 0, 0}, channel);
}

void VirtualHost::AwaitProgress() {
  VirtualWait wait{};
  wait.kind = VirtualWait::kProgress;
  Wait(wait, nullptr);
}

void VirtualHost::Wake(uint32_t executor) {
  const StateLock lock(gpu_->page());
  gpu_->page()->time.context[executor].awake = 1;
  PassOnLocked(*gpu_);
}

void VirtualHost::FunctionReturned(uint32_t executor) {
  const StateLock lock(gpu_->page());
  sluice::simgpu::FunctionReturned(&gpu_->page()->time, executor);
  PassOnLocked(*gpu_);
}

}  // namespace sluice::simgpu
