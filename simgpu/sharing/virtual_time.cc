// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/virtual_time.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace sluice::simgpu {
namespace {

bool Pending(const VirtualWait& wait) {
  return wait.kind != VirtualWait::kFree && wait.kind != VirtualWait::kGranted;
}

bool Earlier(const VirtualWait& a, const VirtualWait& b) {
  return std::tuple(a.at_ns, a.rank, a.order) < std::tuple(b.at_ns, b.rank, b.order);
}

VirtualWait* EarliestReady(VirtualTime* time, std::optional<uint32_t> rank = std::nullopt) {
  VirtualWait* first = nullptr;
  for (VirtualWait& wait : time->wait) {
    if (!Pending(wait) || wait.ready == 0 || (rank && wait.rank != *rank)) continue;
    if (first == nullptr || Earlier(wait, *first)) first = &wait;
  }
  return first;
}

Grant GrantWait(VirtualTime* time, VirtualWait* wait) {
  const uint32_t rank = wait->rank;
  Participant& participant = time->participant[rank];
  participant.clock_ns = std::max(participant.clock_ns, wait->at_ns);
  participant.stall = Participant::kNone;
  wait->kind = VirtualWait::kGranted;
  // Beside a thread that waits in the driver another one may be waiting for that one: it goes on
  // without holding up the device.
  if (!Waits(*time, rank)) time->turn = {Turn::kHost, rank};
  return {Grant::kWait, static_cast<uint32_t>(wait - time->wait)};
}

/// Whether a program that was outside has the turn again.
bool ComesBack(VirtualTime* time, const Fluid& fluid) {
  for (uint32_t rank = 0; rank < kMostParticipants; ++rank) {
    Participant& participant = time->participant[rank];
    if (participant.stall != Participant::kComesBack) continue;
    participant.stall = Participant::kNone;
    if (participant.state != Participant::kHere || Waits(*time, rank)) continue;
    participant.clock_ns = std::max(participant.clock_ns, NowNs(fluid));
    time->turn = {Turn::kHost, rank};
    return true;
  }
  return false;
}

void AdvanceTo(Fluid* fluid, const FluidRules& rules, double clock) {
  Advance(fluid, rules, std::max(clock - fluid->clock_ns, 0.0));
}

void WakeWhoHasSomething(VirtualTime* time, const Fluid& fluid) {
  const uint64_t now = NowNs(fluid);
  for (uint32_t i = 0; i < kFluidContexts; ++i) {
    VirtualContext& context = time->context[i];
    if (context.present == 0) continue;
    const bool ended = std::any_of(std::begin(fluid.op[i]), std::end(fluid.op[i]),
                                   [](const FluidOp& op) { return op.state == FluidOp::kEnded; });
    if (ended || context.next_arrival_ns <= now) context.awake = 1;
  }
}

}  // namespace

void LookOutside(VirtualTime* time) {
  for (VirtualContext& context : time->context) {
    if (context.present != 0 && context.looks_outside != 0) context.awake = 1;
  }
}

uint64_t NowNs(const Fluid& fluid) { return static_cast<uint64_t>(std::llround(fluid.clock_ns)); }

bool MayJoin(const VirtualTime& time, uint32_t rank) {
  return rank < time.expected && time.participant[rank].state == Participant::kAbsent;
}

void Join(VirtualTime* time, uint32_t rank, const ProcessId& id, uint64_t now) {
  time->participant[rank] = {Participant::kHere, Participant::kNone, id, now};
  uint32_t here = 0;
  for (uint32_t i = 0; i < time->expected; ++i) {
    if (time->participant[i].state != Participant::kAbsent) ++here;
  }
  time->open = here == time->expected ? 1 : 0;
}

void Leave(VirtualTime* time, uint32_t rank) {
  // Who goes before all are here took no part: its rank is free, and it is waited for again.
  time->participant[rank].state = time->open == 0 ? Participant::kAbsent : Participant::kLeft;
  for (VirtualWait& wait : time->wait) {
    if (wait.kind != VirtualWait::kFree && wait.rank == rank) wait.kind = VirtualWait::kFree;
  }
  if (time->turn == Turn{Turn::kHost, rank}) time->turn = {};
  const bool some = std::any_of(std::begin(time->participant), std::end(time->participant),
                                [](const Participant& p) { return p.state == Participant::kHere; });
  if (some || time->open == 0) return;
  // The next ones begin a new round.
  for (Participant& p : time->participant) p.state = Participant::kAbsent;
  time->open = 0;
}

std::optional<uint32_t> RankOf(const VirtualTime& time, const ProcessId& id) {
  for (uint32_t i = 0; i < kMostParticipants; ++i) {
    const Participant& p = time.participant[i];
    if (p.state == Participant::kHere && p.id == id) return i;
  }
  return std::nullopt;
}

void StallHost(VirtualTime* time, uint32_t rank) {
  time->participant[rank].stall = Participant::kStalled;
  ++time->stalls;
  if (time->turn == Turn{Turn::kHost, rank}) time->turn = {};
}

void FunctionReturned(VirtualTime* time, uint32_t context) {
  VirtualContext& its = time->context[context];
  its.awake = 1;
  its.function_out = 0;
  Participant& participant = time->participant[its.rank];
  if (participant.stall == Participant::kStalled) participant.stall = Participant::kComesBack;
}

bool Waits(const VirtualTime& time, uint32_t rank) {
  return std::any_of(std::begin(time.wait), std::end(time.wait), [rank](const VirtualWait& wait) {
    return Pending(wait) && wait.rank == rank;
  });
}

uint64_t Spend(VirtualTime* time, uint32_t rank, uint64_t ns, uint64_t now) {
  uint64_t& clock = time->participant[rank].clock_ns;
  // A thread that nobody waited for may find the device ahead of its process.
  clock = std::max(clock, now) + ns;
  return clock;
}

uint64_t SpendInTurn(VirtualTime* time, uint32_t rank, uint64_t ns, uint64_t now) {
  uint64_t& clock = time->participant[rank].clock_ns;
  clock = std::max(clock, time->mapping_until_ns);
  time->mapping_until_ns = Spend(time, rank, ns, now);
  return clock;
}

bool MustYield(const VirtualTime& time, uint32_t rank) {
  const uint64_t clock = time.participant[rank].clock_ns;
  return std::any_of(std::begin(time.wait), std::end(time.wait), [&](const VirtualWait& wait) {
    return Pending(wait) && wait.rank != rank && wait.ready != 0 &&
           std::tuple(wait.at_ns, wait.rank) < std::tuple(clock, rank);
  });
}

std::optional<uint32_t> BeginWait(VirtualTime* time, const VirtualWait& wait, uint64_t now) {
  for (uint32_t i = 0; i < kVirtualWaits; ++i) {
    VirtualWait& place = time->wait[i];
    if (place.kind != VirtualWait::kFree) continue;
    place = wait;
    place.order = ++time->next_order;
    place.at_ns = std::max(time->participant[wait.rank].clock_ns, now);
    place.ready = wait.ready != 0 || wait.kind == VirtualWait::kTurn ? 1 : 0;
    if (time->turn == Turn{Turn::kHost, wait.rank}) {
      time->turn = {};
      // What the program wrote to memory meanwhile is there for streams to see.
      LookOutside(time);
    }
    return i;
  }
  return std::nullopt;
}

void EndWait(VirtualTime* time, uint32_t place) { time->wait[place].kind = VirtualWait::kFree; }

void MakeReady(VirtualWait* wait, uint64_t now) {
  if (!Pending(*wait) || wait->ready != 0) return;
  wait->ready = 1;
  wait->at_ns = std::max(wait->at_ns, now);
}

void Attach(VirtualTime* time, uint32_t context, uint32_t rank) {
  time->context[context] = {1, rank, 0, 0, 0, kNoArrival};
  if (time->turn == Turn{Turn::kContext, context}) time->turn = {};  // of one that died
}

void Detach(VirtualTime* time, Fluid* fluid, uint32_t context, uint64_t now) {
  time->context[context] = {};
  for (FluidOp& op : fluid->op[context]) op.state = FluidOp::kFree;
  if (time->turn == Turn{Turn::kContext, context}) time->turn = {};
  for (VirtualWait& wait : time->wait) {
    const bool here = wait.kind == VirtualWait::kOperation || wait.kind == VirtualWait::kFinished;
    if ((here && wait.executor == context) || wait.kind == VirtualWait::kProgress) {
      MakeReady(&wait, now);
    }
  }
  LookOutside(time);
}

void EndTurn(VirtualTime* time, uint32_t context, const Rest& rest, uint64_t now) {
  VirtualContext& mine = time->context[context];
  mine.next_arrival_ns = rest.next_arrival_ns;
  mine.looks_outside = rest.looks_outside ? 1 : 0;
  mine.function_out = rest.function_out ? 1 : 0;
  if (time->turn == Turn{Turn::kContext, context}) time->turn = {};
  if (!rest.progress) return;
  // It need not look at what it did itself: it has just looked at all its streams.
  const uint32_t awake = mine.awake;
  LookOutside(time);
  mine.awake = awake;
  for (VirtualWait& wait : time->wait) {
    if (wait.kind == VirtualWait::kProgress) MakeReady(&wait, now);
  }
}

Grant PassOn(VirtualTime* time, Fluid* fluid, const FluidRules& rules) {
  for (;;) {
    if (time->turn.holder != Turn::kNobody || time->open == 0) return {};
    if (ComesBack(time, *fluid)) return {};
    for (uint32_t i = 0; i < kFluidContexts; ++i) {
      VirtualContext& context = time->context[i];
      if (context.present == 0 || context.awake == 0) continue;
      context.awake = 0;
      time->turn = {Turn::kContext, i};
      return {Grant::kContext, i};
    }
    for (const VirtualContext& context : time->context) {
      if (context.present == 0 || context.function_out == 0) continue;
      // The clock stands. If all of the program sleeps the function may be waiting for what another
      // thread does, which must get through then.
      VirtualWait* beside = time->participant[context.rank].stall == Participant::kStalled
                                ? EarliestReady(time, context.rank)
                                : nullptr;
      return beside == nullptr ? Grant{} : GrantWait(time, beside);
    }
    // What is issued at t takes part in what the device decides at t: hosts at this time go first,
    // but not before the device has ended what ends now, so that who asks at t sees that.
    VirtualWait* host = EarliestReady(time);
    if (host != nullptr && static_cast<double>(host->at_ns) <= fluid->clock_ns) {
      return GrantWait(time, host);
    }
    Settle(fluid, rules);
    double next = fluid->clock_ns + TimeToNext(*fluid, rules);
    for (const VirtualContext& context : time->context) {
      if (context.present == 0 || context.next_arrival_ns == kNoArrival) continue;
      next = std::min(next, static_cast<double>(context.next_arrival_ns));
    }
    if (host == nullptr ? std::isfinite(next) : next <= static_cast<double>(host->at_ns)) {
      AdvanceTo(fluid, rules, next);
      WakeWhoHasSomething(time, *fluid);
      continue;
    }
    if (host == nullptr) return {};
    AdvanceTo(fluid, rules, static_cast<double>(host->at_ns));
    return GrantWait(time, host);
  }
}

}  // namespace sluice::simgpu
