// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/base/line.h"
#include "intercept/session/client.h"

namespace sluice {

// Memory pools. An ordinary pool of the session's device is served from the arena, whatever its
// number; only its own figures are kept apart. The driver serves pools that can do what the arena
// cannot (be exported, hold managed memory, be limited in size): they are charged for what the
// driver says it has reserved for them.

using protocol::Family;

namespace {

// -1: it is no device's default pool.
CUdevice DefaultPoolDevice(const DriverTable& driver, CUmemoryPool pool) {
  int count = 0;
  if (driver.cuDeviceGetCount == nullptr || driver.cuDeviceGetDefaultMemPool == nullptr ||
      driver.cuDeviceGetCount(&count) != CUDA_SUCCESS) {
    return -1;
  }
  for (CUdevice device = 0; device < count; ++device) {
    CUmemoryPool own = nullptr;
    if (driver.cuDeviceGetDefaultMemPool(&own, device) == CUDA_SUCCESS && own == pool) {
      return device;
    }
  }
  return -1;
}

}  // namespace

void Client::SelectPool(CUdevice device) {
  CUmemoryPool pool = default_pool_;
  if (driver_->cuDeviceGetMemPool != nullptr) {
    static_cast<void>(driver_->cuDeviceGetMemPool(&pool, device));
  }
  selected_device_.store(device, std::memory_order_relaxed);
  selected_pool_.store(pool, std::memory_order_relaxed);
}

// What is unknown is not of this device, or the driver's own affair.
bool Client::FromArena(CUmemoryPool pool) {
  if (pool == default_pool_) return true;
  const LockGuard guard(outside_lock_);
  const Holding* known = holdings_.Find(Thing::kPool, KeyOf(pool));
  return known != nullptr && known->link == kArenaPool && known->mapped == DeviceNumber();
}

// A pool's memory is where the pool is, whatever context asks. -1: where the session is, or not on
// a GPU.
CUdevice Client::OtherDeviceOf(CUmemoryPool pool) {
  if (pool == default_pool_) return -1;
  const CUdevice device = DeviceOfPool(pool);
  return device == session_.device() ? -1 : device;
}

// -1: not on a GPU.
CUdevice Client::DeviceOfPool(CUmemoryPool pool) {
  {
    const LockGuard guard(outside_lock_);
    const Holding* known = holdings_.Find(Thing::kPool, KeyOf(pool));
    if (known != nullptr) return static_cast<CUdevice>(known->mapped);
  }
  // Every one that a program makes on a GPU is known: this may be one that a GPU has by itself.
  return DefaultPoolDevice(*driver_, pool);
}

// The arena is mapped for one GPU: another one that was told it has access would fault at its first
// touch of an ordinary pool's memory, long after the call that asked for it.
CUresult Client::PoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  CUdevice home = DefaultPoolDevice(*driver_, pool);
  if (home < 0) {
    const LockGuard guard(outside_lock_);
    const Holding* known = holdings_.Find(Thing::kPool, KeyOf(pool));
    if (known != nullptr && known->link == kArenaPool) home = static_cast<CUdevice>(known->mapped);
  }
  for (size_t i = 0; map != nullptr && home >= 0 && i < count; ++i) {
    const bool other =
        map[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE && map[i].location.id != home;
    if (!other || map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) continue;
    Line()
        .Text(
            "memory of this job's pools cannot be made accessible to another GPU "
            "(cuMemPoolSetAccess); use an exportable pool or memory of the program's own "
            "(cuMemCreate)")
        .PrintOnce();
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return driver_->cuMemPoolSetAccess(pool, map, count);
}

CUresult Client::PoolCreate(CUmemoryPool* pool, const CUmemPoolProps* props) {
  const CUresult result = driver_->cuMemPoolCreate(pool, props);
  if (result != CUDA_SUCCESS) return result;
  const bool on_device = props->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  // Before the session it is not known which device that will be: where the pool is, is looked at
  // when it is used.
  if (!on_device) return result;
  const auto device = static_cast<uint32_t>(props->location.id);
  const bool ordinary = props->allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
                        props->handleTypes == CU_MEM_HANDLE_TYPE_NONE && props->maxSize == 0;
  Keep({KeyOf(*pool), 0, 0, ordinary ? kArenaPool : kDriverPool, 0, 1, device, Thing::kPool});
  if (!ordinary) driver_served_.store(true, std::memory_order_relaxed);
  return result;
}

CUresult Client::PoolImportPointer(CUdeviceptr* out, CUmemoryPool pool,
                                   CUmemPoolPtrExportData* data) {
  return OpenForeign(out, [=, this] { return driver_->cuMemPoolImportPointer(out, pool, data); });
}

CUresult Client::PoolDestroy(CUmemoryPool pool) {
  Holding gone{};
  bool known = false;
  CUresult result = CUDA_SUCCESS;
  {
    // Whoever looks at the pools' figures just now must not ask about one that is gone.
    const LockGuard guard(pools_lock_);
    known = Forget(Thing::kPool, KeyOf(pool), &gone);
    result = driver_->cuMemPoolDestroy(pool);
    if (known && result != CUDA_SUCCESS) Keep(gone);
    if (known && result == CUDA_SUCCESS) OrphanBlocks(pool);
  }
  if (!known || result != CUDA_SUCCESS) return result;
  // The device's current pool is the default one again.
  CUmemoryPool expected = pool;
  selected_pool_.compare_exchange_strong(expected, default_pool_);
  if (gone.link == kDriverPool) SettleDriverMemory();
  return result;
}

// Blocks may outlive their pool: from now on each is charged by itself.
void Client::OrphanBlocks(CUmemoryPool pool) {
  const LockGuard guard(outside_lock_);
  holdings_.ForEach([&](Holding& holding) {
    if (holding.thing == Thing::kPointer && holding.link == KeyOf(pool)) holding.mapped = 1;
  });
}

void Client::NotePoolBlock(CUdeviceptr at, uint64_t bytes, CUmemoryPool pool) {
  const LockGuard guard(outside_lock_);
  Holding* known = holdings_.Find(Thing::kPool, KeyOf(pool));
  if (known == nullptr) return;
  known->bytes += bytes;
  if (known->bytes > known->high) known->high = known->bytes;
  if (holdings_.Insert({at, bytes, 0, KeyOf(pool), 0, 1, 0, Thing::kPointer})) {
    pool_blocks_.fetch_add(1, std::memory_order_relaxed);
  }
}

void Client::ForgetPoolBlock(CUdeviceptr at) {
  if (pool_blocks_.load(std::memory_order_relaxed) == 0) return;
  const LockGuard guard(outside_lock_);
  Holding gone{};
  if (!holdings_.Take(Thing::kPointer, at, &gone)) return;
  pool_blocks_.fetch_sub(1, std::memory_order_relaxed);
  Holding* pool = holdings_.Find(Thing::kPool, gone.link);
  if (pool != nullptr) pool->bytes -= gone.bytes;
}

// With a session all blocks of its arena end, also those of pools that live on.
void Client::ForgetPoolBlocks() {
  constexpr uint32_t kAtOnce = 64;
  for (uint32_t count = kAtOnce; count == kAtOnce;) {
    CUdeviceptr gone[kAtOnce];
    count = 0;
    {
      const LockGuard guard(outside_lock_);
      holdings_.ForEach([&](const Holding& holding) {
        const bool block = holding.thing == Thing::kPointer && holding.link != 0 &&
                           session_.arena().Contains(holding.key);
        if (block && count < kAtOnce) gone[count++] = holding.key;
      });
    }
    for (uint32_t i = 0; i < count; ++i) ForgetPoolBlock(gone[i]);
  }
}

// Of a block of the arena. Null: the pool is gone.
CUmemoryPool Client::PoolOfBlock(CUdeviceptr at) {
  if (pool_blocks_.load(std::memory_order_relaxed) == 0) return default_pool_;
  const LockGuard guard(outside_lock_);
  const Holding* known = holdings_.Find(Thing::kPointer, at);
  if (known == nullptr) return default_pool_;
  return known->mapped == 1 ? nullptr : reinterpret_cast<CUmemoryPool>(known->link);
}

CUresult Client::AllocFromPool(CUdeviceptr* out, size_t bytes, CUmemoryPool pool, CUstream stream) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // Of nothing as in AllocAsync.
  if (bytes == 0 || Capturing(stream))
    return driver_->cuMemAllocFromPoolAsync(out, bytes, pool, stream);
  const ContextScope inside(*driver_, ElsewhereOf(stream));
  // For the stream a driver asks for a context, but for none of the pool's GPU.
  CUdevice current = kNoDevice;
  CUresult result = driver_->cuCtxGetDevice(&current);
  if (result == CUDA_SUCCESS && !has_session()) {
    const CUdevice home = DeviceOfPool(pool);
    result = EnsureSessionOn(home >= 0 ? home : current);
  }
  if (result != CUDA_SUCCESS) return result;
  if (const CUdevice other = OtherDeviceOf(pool); other >= 0) return RefuseDevice(other);
  if (!FromArena(pool)) return AllocFromDriverPool(out, bytes, pool, stream);
  result = AllocFromArena(out, bytes, stream);
  if (result == CUDA_SUCCESS && pool != default_pool_) NotePoolBlock(*out, bytes, pool);
  return result;
}

CUresult Client::AllocFromDriverPool(CUdeviceptr* out, size_t bytes, CUmemoryPool pool,
                                     CUstream stream) {
  const auto issue = [=, this] {
    return driver_->cuMemAllocFromPoolAsync(out, bytes, pool, stream);
  };
  bool charged = false;
  {
    const LockGuard guard(outside_lock_);
    const Holding* known = holdings_.Find(Thing::kPool, KeyOf(pool));
    charged = known != nullptr && known->link == kDriverPool;
  }
  if (!charged) return issue();
  const LockGuard settling(settle_lock_);
  // What the pool has reserved and does not use is paid for already.
  cuuint64_t reserved = 0;
  cuuint64_t used = 0;
  static_cast<void>(
      driver_->cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
  static_cast<void>(driver_->cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  const uint64_t spare = reserved > used ? reserved - used : 0;
  if (bytes > spare) {
    const CUresult result = Charge(Family::kPool, bytes - spare, session_.device());
    if (result != CUDA_SUCCESS) return result;
    pools_charged_ += bytes - spare;
  }
  const CUresult result = issue();
  if (result == CUDA_SUCCESS) {
    Keep({KeyOf(*out), bytes, 0, KeyOf(pool), 0, 1, 0, Thing::kPointer});
  }
  const CUresult settled = SettleLocked(true);
  if (result != CUDA_SUCCESS || settled == CUDA_SUCCESS) return result;
  // The driver reserves in steps, and for the last one there is no room.
  Holding refused{};
  static_cast<void>(Forget(Thing::kPointer, KeyOf(*out), &refused));
  static_cast<void>(driver_->cuMemFreeAsync(*out, stream));
  static_cast<void>(driver_->cuStreamSynchronize(stream));
  static_cast<void>(driver_->cuMemPoolTrimTo(pool, 0));
  static_cast<void>(SettleLocked(false));
  return settled;
}

CUresult Client::PoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  const bool figure = attribute >= CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT &&
                      attribute <= CU_MEMPOOL_ATTR_USED_MEM_HIGH;
  if (!figure || value == nullptr || !has_session() || !FromArena(pool)) {
    return driver_->cuMemPoolGetAttribute(pool, attribute, value);
  }
  const bool high =
      attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH || attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
  const bool used =
      attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT || attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
  auto* bytes = static_cast<cuuint64_t*>(value);
  if (pool != default_pool_) {
    // Free space belongs to the arena as a whole: such a pool reserves what is used of it.
    const LockGuard guard(outside_lock_);
    const Holding* known = holdings_.Find(Thing::kPool, KeyOf(pool));
    if (known == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *bytes = high ? known->high : known->bytes;
    return CUDA_SUCCESS;
  }
  const LockGuard guard(state_lock_);
  if (used) {
    *bytes = (high ? used_high_granules_ : arena_.live_granules()) << kGranuleShift;
  } else {
    *bytes = uint64_t{high ? reserved_high_units_ : arena_.held_units()} * session_.unit_bytes();
  }
  return CUDA_SUCCESS;
}

CUresult Client::PoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  const bool high =
      attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH || attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
  if (!high || value == nullptr || !has_session() || !FromArena(pool)) {
    return driver_->cuMemPoolSetAttribute(pool, attribute, value);
  }
  // The driver's rule: a high-water mark can only be reset, by writing 0.
  if (*static_cast<const cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (pool != default_pool_) {
    const LockGuard guard(outside_lock_);
    Holding* known = holdings_.Find(Thing::kPool, KeyOf(pool));
    if (known != nullptr) known->high = known->bytes;
    return CUDA_SUCCESS;
  }
  const LockGuard guard(state_lock_);
  if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
    used_high_granules_ = arena_.live_granules();
  } else {
    reserved_high_units_ = arena_.held_units();
  }
  return CUDA_SUCCESS;
}

CUresult Client::PoolTrimTo(CUmemoryPool pool, size_t keep_bytes) {
  if (!has_session() || pool != default_pool_) {
    const CUresult result = driver_->cuMemPoolTrimTo(pool, keep_bytes);
    SettleDriverMemory();
    return result;
  }
  MarkFrees();  // for what was freed late a mark may be far
  while (true) {
    uint32_t excess = 0;
    {
      const LockGuard guard(state_lock_);
      const uint64_t keep = (keep_bytes + session_.unit_bytes() - 1) / session_.unit_bytes();
      if (arena_.held_units() > keep) excess = arena_.held_units() - static_cast<uint32_t>(keep);
    }
    if (ReleaseUnits(excess) == 0) break;
  }
  return driver_->cuMemPoolTrimTo(pool, keep_bytes);
}

}  // namespace sluice
