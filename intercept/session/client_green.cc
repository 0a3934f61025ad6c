// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/session/client.h"

namespace sluice {

// Green contexts. To the driver one is the device's primary context with fewer SMs, which it
// retains: memory, modules and arrays that are made in it belong to the primary one and outlive it.
// Only its streams end. So a session is opened in the primary context, and what is waited for is
// that one, too, because its synchronisation waits for the green ones.

// Null: there is none. Retaining an inactive primary context would create it.
CUcontext Client::PrimaryContextOf(CUdevice device) const {
  CUcontext primary = nullptr;
  if (!PrimaryContextActive(device) ||
      driver_->cuDevicePrimaryCtxRetain(&primary, device) != CUDA_SUCCESS) {
    return nullptr;
  }
  static_cast<void>(driver_->cuDevicePrimaryCtxRelease_v2(device));
  return primary;
}

// The context itself, or the primary one of which it is a part. outside_lock_ is held.
uint64_t Client::HomeLocked(uint64_t context) {
  if (greens_.load(std::memory_order_relaxed) == 0) [[likely]]
    return context;
  const Holding* const view = holdings_.Find(Thing::kGreenView, context);
  return view == nullptr ? context : view->link;
}

CUcontext Client::HomeOf(CUcontext context) {
  if (greens_.load(std::memory_order_relaxed) == 0) [[likely]]
    return context;
  const LockGuard guard(outside_lock_);
  return reinterpret_cast<CUcontext>(HomeLocked(KeyOf(context)));
}

// As a context's end, but nothing says that this one waits for what the streams were given: what
// was freed on them is covered by marks from before it, or by a synchronisation of the primary
// context. With contexts_lock_. 0: its streams are the primary context's to the driver.
uint64_t Client::BeginGreenEnd(const Holding& green) {
  if (green.link == 0) return 0;
  bool due[protocol::kStreamSlots] = {};
  if (has_session()) {
    const LockGuard guard(state_lock_);
    for (uint32_t slot = 0; slot < streams_.used(); ++slot) {
      due[slot] = streams_[slot].active && KeyOf(streams_[slot].context) == green.link &&
                  arena_.HasUnsynced(slot) &&
                  !protocol::MarkReached(streams_.queued()[slot], arena_.LatestMark(slot));
    }
  }
  for (uint32_t slot = 0; slot < protocol::kStreamSlots; ++slot) {
    if (due[slot]) static_cast<void>(Mark(slot, true));
  }
  return BeginContextEnd(reinterpret_cast<CUcontext>(green.link));
}

void Client::FinishGreenEnd(uint64_t ending, bool ended) {
  if (!ended) {
    const uint64_t alive = ending & ~kEnding;
    NameStreams(ending, alive, true);
    return NameContext(ending, alive);
  }
  captures_.ContextGone(ending);
  const LockGuard guard(state_lock_);
  for (uint32_t slot = 0; slot < streams_.used(); ++slot) {
    if (KeyOf(streams_[slot].context) == ending) streams_[slot].context = nullptr;
  }
}

void Client::KeepGreen(const Holding& green) {
  const LockGuard guard(outside_lock_);
  greens_.fetch_add(1, std::memory_order_relaxed);
  static_cast<void>(holdings_.Insert(green));
  if (green.link == 0) return;
  // By its own name, too: at each launch somebody asks for its home.
  Holding view{};
  view.thing = Thing::kGreenView;
  view.key = green.link;
  view.link = green.high;
  static_cast<void>(holdings_.Insert(view));
}

bool Client::ForgetGreen(CUgreenCtx green, Holding* out) {
  const LockGuard guard(outside_lock_);
  if (!holdings_.Take(Thing::kGreen, KeyOf(green), out)) return false;
  greens_.fetch_sub(1, std::memory_order_relaxed);
  Holding view{};
  if (out->link != 0) static_cast<void>(holdings_.Take(Thing::kGreenView, out->link, &view));
  return true;
}

CUresult Client::GreenDestroy(CUgreenCtx green) {
  Holding held{};
  if (!ForgetGreen(green, &held)) return driver_->cuGreenCtxDestroy(green);
  const CUresult result = ReleasePrimary(static_cast<CUdevice>(held.mapped), &held);
  if (result != CUDA_SUCCESS) KeepGreen(held);
  return result;
}

}  // namespace sluice
