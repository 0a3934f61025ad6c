// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/base/line.h"
#include "intercept/session/client.h"

namespace sluice {

// Memory that is not served from the arena. The daemon is asked before the driver is, and told when
// the driver has it back; between the two it is somebody's for certain, and nobody lends it.

using protocol::Family;
using protocol::FrameType;

namespace {

constexpr size_t kFirstCounted = static_cast<size_t>(Family::kImported);

}  // namespace

bool Client::Accounted() const { return session_.daemon_minor() >= 1; }

// The session is there. An answer comes at once, so this waits only for requests of other threads.
CUresult Client::ChargeInSession(Family family, uint64_t bytes) {
  const LockGuard guard(request_lock_);
  return ChargeLocked(family, bytes);
}

CUresult Client::ChargeLocked(Family family, uint64_t bytes) {
  if (!Accounted()) return CUDA_SUCCESS;
  for (bool tried = false;; tried = true) {
    if (state_.load(std::memory_order_acquire) != State::kReady && !Resume()) {
      Line().Text("no daemon to ask for memory outside the pool: none is given").PrintOnce();
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    protocol::Charge frame{};
    frame.header = MakeHeader(FrameType::kCharge, sizeof frame, 0);
    frame.family = static_cast<uint32_t>(family);
    frame.bytes = bytes;
    Answer answer;
    send_lock_.Acquire();
    const Answer::Kind kind = Request(&frame.header, &answer);
    if (kind == Answer::kGranted) {
      if (family != Family::kContext) outside_bytes_.fetch_add(bytes, std::memory_order_relaxed);
      const LockGuard sending(send_lock_);
      charged_[static_cast<size_t>(family)] += family == Family::kContext ? 1 : bytes;
      return CUDA_SUCCESS;
    }
    if (kind == Answer::kLost) continue;
    if (tried || answer.code != protocol::DenyCode::kOverLimit) {
      Line().Text(answer.text).PrintOnce();
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    // Over the limit: what the arena holds and does not need counts, too.
    static_cast<void>(Drain());
    while (ReleaseUnits(~0u) > 0) {
    }
  }
}

CUresult Client::Charge(Family family, uint64_t bytes) {
  if (const CUresult result = EnsureSession(); result != CUDA_SUCCESS) return result;
  if (!Accounted() && (family == Family::kPhysical || family == Family::kManaged)) {
    Line()
        .Text(
            "this daemon does not know how to charge memory outside the pool: managed and physical "
            "memory (cuMemAllocManaged, cuMemCreate) are refused; use cuMemAlloc or "
            "cuMemAllocAsync, or a newer sluice-noded")
        .PrintOnce();
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return ChargeInSession(family, bytes);
}

void Client::Uncharge(Family family, uint64_t bytes) {
  if (bytes == 0 || !Accounted()) return;
  if (family != Family::kContext) outside_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  protocol::Uncharge frame{};
  frame.header = MakeHeader(FrameType::kUncharge, sizeof frame, 0);
  frame.family = static_cast<uint32_t>(family);
  frame.bytes = bytes;
  const LockGuard guard(send_lock_);
  // One of both tells the daemon: this frame, or what is declared to the next one.
  charged_[static_cast<size_t>(family)] -= family == Family::kContext ? 1 : bytes;
  if (state_.load(std::memory_order_acquire) != State::kReady) return;
  if (const char* error = session_.Send(&frame.header)) MarkLost(error);
}

void Client::Keep(const Holding& holding) {
  const LockGuard guard(outside_lock_);
  // Without memory for the entry its charge stays until the process ends: too much, never too
  // little.
  static_cast<void>(holdings_.Insert(holding));
}

bool Client::Forget(Thing thing, uint64_t key, Holding* out) {
  const LockGuard guard(outside_lock_);
  return holdings_.Take(thing, key, out);
}

// The program has let go of it: whoever pays for it pays no longer.
void Client::GiveUp(const Holding& gone) {
  if (gone.family == 0) return;
  const auto family = static_cast<Family>(gone.family);
  if (gone.family >= kFirstCounted) {
    Count(family, -static_cast<int64_t>(gone.bytes));
  } else {
    Uncharge(family, gone.bytes);
  }
}

void Client::Count(Family family, int64_t change) {
  std::atomic<uint64_t>& total = counted_[static_cast<size_t>(family) - kFirstCounted];
  total.fetch_add(static_cast<uint64_t>(change), std::memory_order_relaxed);
  SendCount(family);
}

void Client::SendCount(Family family) {
  if (state_.load(std::memory_order_acquire) != State::kReady || !Accounted()) return;
  protocol::Count frame{};
  frame.header = MakeHeader(FrameType::kCount, sizeof frame, 0);
  frame.family = static_cast<uint32_t>(family);
  const LockGuard guard(send_lock_);
  // Read inside: the last frame carries the last value.
  frame.bytes =
      counted_[static_cast<size_t>(family) - kFirstCounted].load(std::memory_order_relaxed);
  if (const char* error = session_.Send(&frame.header)) MarkLost(error);
}

void Client::KeepCounted(Thing thing, uint64_t key, uint64_t bytes, Family family) {
  Holding holding{};
  holding.thing = thing;
  holding.key = key;
  holding.bytes = bytes;
  holding.family = static_cast<uint32_t>(family);
  holding.refs = 1;
  Keep(holding);
  Count(family, static_cast<int64_t>(bytes));
}

// What was there before the session: contexts of which it can only be in one, and what outlives a
// context. Without room for it the job gets no session. request_lock_ is held.
CUresult Client::DeclareOutside() {
  Holding own{};
  static_cast<void>(Forget(Thing::kContext, KeyOf(context_), &own));
  uint64_t physical = 0;
  uint64_t contexts = 0;
  {
    const LockGuard guard(outside_lock_);
    holdings_.ForEach([&](Holding& holding) {
      if (holding.thing == Thing::kContext) {
        holding.family = static_cast<uint32_t>(Family::kContext);
        holding.bytes = 1;
        ++contexts;
      } else if (holding.thing == Thing::kMemory &&
                 holding.family == static_cast<uint32_t>(Family::kPhysical)) {
        physical += holding.bytes;
      }
    });
  }
  for (; contexts > 0; --contexts) {
    if (const CUresult result = ChargeLocked(Family::kContext, 1); result != CUDA_SUCCESS) {
      return result;
    }
  }
  for (const Family family : {Family::kImported, Family::kHostPinned, Family::kHostRegistered}) {
    if (counted_[static_cast<size_t>(family) - kFirstCounted].load() > 0) SendCount(family);
  }
  // Pools belong to no context, either.
  const uint64_t reserved = PoolsReserved();
  if (reserved > 0) {
    if (const CUresult result = ChargeLocked(Family::kPool, reserved); result != CUDA_SUCCESS) {
      return result;
    }
    pools_charged_.store(reserved);
  }
  return physical == 0 ? CUDA_SUCCESS : ChargeLocked(Family::kPhysical, physical);
}

// The session's context is gone, and with it all that belonged to it. Physical memory of the
// program's own lives on; the next session is charged for it.
void Client::ForgetContextOutside() {
  uint64_t charged[kFirstCounted] = {};
  uint64_t imported = 0;
  {
    const LockGuard guard(outside_lock_);
    holdings_.ForEach([&](Holding& holding) {
      if (holding.thing == Thing::kContext || holding.thing == Thing::kHost) return;
      if (holding.family < kFirstCounted) charged[holding.family] += holding.bytes;
      if (holding.thing == Thing::kMemory) return;
      if (holding.family == static_cast<uint32_t>(Family::kImported)) imported += holding.bytes;
      holding.family = 0;  // its handle may still come to be given up
    });
  }
  for (uint32_t family = 1; family < kFirstCounted; ++family) {
    Uncharge(static_cast<Family>(family), charged[family]);
  }
  Uncharge(Family::kPool, pools_charged_.exchange(0));
  Uncharge(Family::kGraph, graphs_charged_.exchange(0));
  if (imported > 0) Count(Family::kImported, -static_cast<int64_t>(imported));
}

uint64_t Client::OutsideInLimit() const {
  return session_.limit_given() ? outside_bytes_.load(std::memory_order_relaxed) : 0;
}

// Contexts. The first one is there before there is a session, and is the daemon's to charge.

void Client::KeepContext(CUcontext context, bool charged) {
  Holding holding{};
  holding.thing = Thing::kContext;
  holding.key = KeyOf(context);
  holding.bytes = 1;
  holding.family = charged ? static_cast<uint32_t>(Family::kContext) : 0;
  const LockGuard guard(outside_lock_);
  if (holdings_.Find(Thing::kContext, holding.key) == nullptr) {
    static_cast<void>(holdings_.Insert(holding));
  }
}

}  // namespace sluice
