// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/session/client.h"

namespace sluice {

// Memory that the driver keeps for pools and graphs of its own: it grows and shrinks in the
// driver's steps, at the driver's time. Charged for is what the driver says it has reserved; it is
// asked for before it can grow, and looked at again after anything that may have made it smaller.

using protocol::Family;

uint64_t Client::PoolsReserved() {
  constexpr uint32_t kAtOnce = 64;
  CUmemoryPool pools[kAtOnce];
  uint64_t sum = 0;
  const LockGuard looking(pools_lock_);
  for (uint32_t first = 0, count = kAtOnce; count == kAtOnce; first += kAtOnce) {
    count = 0;
    uint32_t seen = 0;
    {
      const LockGuard guard(outside_lock_);
      holdings_.ForEach([&](const Holding& holding) {
        const bool orphan = holding.thing == Thing::kPointer && holding.mapped == 1;
        if (orphan && first == 0) sum += holding.bytes;
        if (holding.thing != Thing::kPool || holding.link != kDriverPool ||
            holding.mapped != DeviceNumber()) {
          return;
        }
        if (seen++ >= first && count < kAtOnce) {
          pools[count++] = reinterpret_cast<CUmemoryPool>(holding.key);
        }
      });
    }
    for (uint32_t i = 0; i < count; ++i) {
      cuuint64_t reserved = 0;
      if (driver_->cuMemPoolGetAttribute(pools[i], CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
                                         &reserved) == CUDA_SUCCESS) {
        sum += reserved;
      }
    }
  }
  return sum;
}

// What graphs have, and what those that were not launched yet will still take.
uint64_t Client::GraphsReserved() {
  cuuint64_t reserved = 0;
  if (driver_->cuDeviceGetGraphMemAttribute != nullptr) {
    static_cast<void>(driver_->cuDeviceGetGraphMemAttribute(
        session_.device(), CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved));
  }
  return reserved;
}

uint64_t Client::GraphsPending() {
  uint64_t pending = 0;
  const LockGuard guard(outside_lock_);
  holdings_.ForEach([&](const Holding& holding) {
    if (holding.thing == Thing::kGraphExec) pending += holding.bytes;
  });
  return pending;
}

CUresult Client::SettleOne(Family family, std::atomic<uint64_t>& charged, uint64_t due,
                           bool may_grow) {
  const uint64_t now = charged.load();
  if (due < now) {
    Uncharge(family, now - due);
    charged.store(due);
  } else if (due > now && may_grow) {
    const CUresult result = Charge(family, due - now, session_.device());
    if (result != CUDA_SUCCESS) return result;
    charged.store(due);
  }
  return CUDA_SUCCESS;
}

// With settle_lock_.
CUresult Client::SettleLocked(bool may_grow) {
  const RelaxedCapture relaxed(*driver_);
  CUresult result = CUDA_SUCCESS;
  do {
    settle_again_.store(false);
    result = SettleOne(Family::kPool, pools_charged_, PoolsReserved(), may_grow);
    if (result == CUDA_SUCCESS) {
      result =
          SettleOne(Family::kGraph, graphs_charged_, GraphsReserved() + GraphsPending(), may_grow);
    }
  } while (result == CUDA_SUCCESS && settle_again_.load());
  return result;
}

// After anything that may have made it smaller. Never waits: whoever settles just now looks once
// more.
void Client::SettleDriverMemory() {
  if (!has_session() || !driver_served_.load(std::memory_order_relaxed)) return;
  settle_again_.store(true);
  // Once more after letting go: somebody may have failed to get the lock a moment before.
  while (settle_again_.load() && settle_lock_.TryAcquire()) {
    static_cast<void>(SettleLocked(false));
    settle_lock_.Release();
  }
}

// A driver gives back what its pools have to spare when it is waited for, however.
CUresult Client::EventSynchronize(CUevent event) {
  const CUresult result = driver_->cuEventSynchronize(event);
  SettleDriverMemory();
  return result;
}

}  // namespace sluice
