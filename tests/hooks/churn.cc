// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <random>
#include <thread>

#include "common/oracle_page.h"
#include "tests/hooks/hook_fixture.h"

// Random calls of all families on several threads and streams. At every quiet point what the
// program has, what the daemon thinks it has, and what the device counts are the same.
// accounting_test runs it as a job, two at a time.

namespace sluice::hooks {
namespace {

using contract::CountedBytes;
using contract::ReadWrite;

uint64_t FromEnvironment(const char* name, uint64_t standard) {
  const char* text = getenv(name);
  return text == nullptr ? standard : strtoull(text, nullptr, 10);
}

/// Bytes by what the daemon calls them.
struct Tally {
  uint64_t array = 0;
  uint64_t physical = 0;
  uint64_t host_pinned = 0;
};

/// What one thread has, and does next. Everything it holds is its own.
class Worker {
 public:
  Worker(CUcontext context, CUfunction fill, CUmemoryPool ordinary, CUmemoryPool exportable,
         uint64_t seed)
      : context_(context), fill_(fill), pools_{ordinary, exportable}, random_(seed) {
    EXPECT_CU(cuCtxSetCurrent(context_));
    for (CUstream& stream : streams_) EXPECT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT_CU(cuEventCreate(&event_, 0));
    EXPECT_CU(cuMemAddressReserve(&range_, kRangeSlots * kPhysical, 0, 0, 0));
  }

  void Run(uint64_t calls) {
    EXPECT_CU(cuCtxSetCurrent(context_));
    for (uint64_t i = 0; i < calls && !::testing::Test::HasFailure(); ++i) Step();
  }
  /// Gives everything back.
  void Clear() {
    EXPECT_CU(cuCtxSetCurrent(context_));
    while (!blocks_.empty()) FreeBlock();
    while (!arrays_.empty()) DestroyArray();
    while (!physical_.empty()) ReleasePhysical();
    while (!pinned_.empty()) FreePinned();
  }
  const Tally& tally() const { return tally_; }
  uint64_t refused() const { return refused_; }

 private:
  static constexpr size_t kPhysical = 2 * kMiB;
  static constexpr size_t kRangeSlots = 4;

  struct BlockOf {
    CUdeviceptr at;
    size_t bytes;
    CUstream stream;  // null: cuMemAlloc
  };
  struct ArrayOf {
    CUarray array;
    CUmipmappedArray mipmapped;
    uint64_t bytes;
  };
  struct PhysicalOf {
    CUmemGenericAllocationHandle handle;
    int slot;  // where it is mapped; -1: nowhere
  };

  size_t Pick(size_t count) { return random_() % count; }
  template <typename T>
  static T TakeAt(std::vector<T>* all, size_t at) {
    std::swap((*all)[at], all->back());
    T taken = all->back();
    all->pop_back();
    return taken;
  }
  /// Served; anything but a refusal for want of memory is a defect.
  bool Served(CUresult result) {
    if (result == CUDA_SUCCESS) return true;
    EXPECT_EQ(result, CUDA_ERROR_OUT_OF_MEMORY);
    ++refused_;
    return false;
  }

  void Step() {
    const size_t what = Pick(1000);
    if (what < 300) {
      AllocBlock();
    } else if (what < 600) {
      if (!blocks_.empty()) FreeBlock();
    } else if (what < 900) {
      if (!blocks_.empty()) Use();
    } else if (what < 925) {
      CreateArray();
    } else if (what < 950) {
      if (!arrays_.empty()) DestroyArray();
    } else if (what < 960) {
      CreatePhysical();
    } else if (what < 975) {
      if (!physical_.empty()) ReleasePhysical();
    } else if (what < 985) {
      AllocPinned();
    } else if (what < 995) {
      if (!pinned_.empty()) FreePinned();
    } else {
      EXPECT_CU(cuStreamSynchronize(streams_[Pick(2)]));
    }
  }

  void AllocBlock() {
    BlockOf block{0, 1 + Pick(Pick(8) == 0 ? 600'000 : 20'000), nullptr};
    const size_t how = Pick(10);
    CUresult result = CUDA_SUCCESS;
    if (how < 2) {
      result = cuMemAlloc_v2(&block.at, block.bytes);
    } else {
      block.stream = streams_[Pick(2)];
      result = how < 8
                   ? cuMemAllocAsync(&block.at, block.bytes, block.stream)
                   : cuMemAllocFromPoolAsync(&block.at, block.bytes, pools_[how - 8], block.stream);
    }
    if (Served(result)) blocks_.push_back(block);
  }
  void FreeBlock() {
    const BlockOf block = TakeAt(&blocks_, Pick(blocks_.size()));
    if (block.stream == nullptr) {
      EXPECT_CU(cuMemFree_v2(block.at));
      return;
    }
    CUstream on = block.stream;
    if (Pick(4) == 0) {  // on another stream, which is ordered behind the one that used it
      on = streams_[Pick(2)];
      EXPECT_CU(cuEventRecord(event_, block.stream));
      EXPECT_CU(cuStreamWaitEvent(on, event_, 0));
    }
    EXPECT_CU(cuMemFreeAsync(block.at, on));
  }
  void Use() {
    const BlockOf& block = blocks_[Pick(blocks_.size())];
    CUdeviceptr at = block.at;
    uint32_t value = 7;
    uint64_t count = std::min<uint64_t>(block.bytes / 4, 64);
    void* params[] = {&at, &value, &count};
    EXPECT_CU(cuLaunchKernel(fill_, 1, 1, 1, 1, 1, 1, 0, block.stream, params, nullptr));
  }
  void CreateArray() {
    CUDA_ARRAY3D_DESCRIPTOR_v2 shape{};
    shape.Width = 1 + Pick(200);
    shape.Height = Pick(200);
    shape.Depth = shape.Height > 0 ? Pick(4) : 0;
    shape.Format = Pick(2) == 0 ? CU_AD_FORMAT_FLOAT : CU_AD_FORMAT_UNSIGNED_INT8;
    shape.NumChannels = 1u << Pick(3);
    const uint64_t bytes = shape.Width * std::max<size_t>(shape.Height, 1) *
                           std::max<size_t>(shape.Depth, 1) * shape.NumChannels *
                           (shape.Format == CU_AD_FORMAT_FLOAT ? 4 : 1);
    ArrayOf array{nullptr, nullptr, bytes};
    const CUresult result = Pick(2) == 0 ? cuArray3DCreate_v2(&array.array, &shape)
                                         : cuMipmappedArrayCreate(&array.mipmapped, &shape, 1);
    if (!Served(result)) return;
    arrays_.push_back(array);
    tally_.array += bytes;
  }
  void DestroyArray() {
    const ArrayOf array = TakeAt(&arrays_, Pick(arrays_.size()));
    EXPECT_CU(array.array != nullptr ? cuArrayDestroy(array.array)
                                     : cuMipmappedArrayDestroy(array.mipmapped));
    tally_.array -= array.bytes;
  }
  void CreatePhysical() {
    const CUmemAllocationProp prop = DeviceMemory();
    PhysicalOf made{0, -1};
    if (!Served(cuMemCreate(&made.handle, kPhysical, &prop, 0))) return;
    for (int slot = 0; slot < static_cast<int>(kRangeSlots) && Pick(4) > 0; ++slot) {
      if (mapped_[slot]) continue;
      const CUdeviceptr at = range_ + static_cast<size_t>(slot) * kPhysical;
      const CUmemAccessDesc access = ReadWrite();
      EXPECT_CU(cuMemMap(at, kPhysical, 0, made.handle, 0));
      EXPECT_CU(cuMemSetAccess(at, kPhysical, &access, 1));
      // The mapping alone holds it from here on, as allocators do it.
      if (Pick(2) == 0) {
        EXPECT_CU(cuMemRelease(made.handle));
        made.handle = 0;
      }
      mapped_[slot] = true;
      made.slot = slot;
      break;
    }
    physical_.push_back(made);
    tally_.physical += kPhysical;
  }
  void ReleasePhysical() {
    const PhysicalOf gone = TakeAt(&physical_, Pick(physical_.size()));
    if (gone.slot >= 0) {
      EXPECT_CU(cuMemUnmap(range_ + static_cast<size_t>(gone.slot) * kPhysical, kPhysical));
      mapped_[gone.slot] = false;
    }
    if (gone.handle != 0) {
      EXPECT_CU(cuMemRelease(gone.handle));
    }
    tally_.physical -= kPhysical;
  }
  void AllocPinned() {
    void* at = nullptr;
    EXPECT_CU(cuMemHostAlloc(&at, 4096, 0));
    pinned_.push_back(at);
    tally_.host_pinned += 4096;
  }
  void FreePinned() {
    EXPECT_CU(cuMemFreeHost(TakeAt(&pinned_, Pick(pinned_.size()))));
    tally_.host_pinned -= 4096;
  }

  CUcontext context_;
  CUfunction fill_;
  CUmemoryPool pools_[2];
  std::mt19937_64 random_;
  CUstream streams_[2] = {};
  CUevent event_ = nullptr;
  CUdeviceptr range_ = 0;
  bool mapped_[kRangeSlots] = {};
  std::vector<BlockOf> blocks_;
  std::vector<ArrayOf> arrays_;
  std::vector<PhysicalOf> physical_;
  std::vector<void*> pinned_;
  Tally tally_;
  uint64_t refused_ = 0;
};

class Churn : public Hook {
 protected:
  void SetUp() override {
    Hook::SetUp();
    Begin();
    const int fd = open(getenv("SLUICE_ORACLE"), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    oracle_ = static_cast<const OraclePage*>(
        mmap(nullptr, sizeof(OraclePage), PROT_READ, MAP_SHARED, fd, 0));
    close(fd);
    ASSERT_NE(oracle_, MAP_FAILED);
    ordinary_ = NewPool(CU_MEM_HANDLE_TYPE_NONE);
    exportable_ = NewPool(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  }
  static CUmemoryPool NewPool(CUmemAllocationHandleType handles) {
    CUmemPoolProps props{};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.handleTypes = handles;
    props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemoryPool pool = nullptr;
    EXPECT_CU(cuMemPoolCreate(&pool, &props));
    return pool;
  }
  /// What the device takes for this process's.
  uint64_t HeldByDevice() const {
    uint64_t units = 0;
    for (uint32_t unit = 0; unit < oracle_->unit_count; ++unit) {
      if (oracle_->unit[unit].holder.load() == static_cast<uint32_t>(getpid())) ++units;
    }
    return units * oracle_->unit_bytes;
  }
  void ExpectAllAgree(const Tally& tally) {
    ExpectSoon([this] { return Outside("array"); }, tally.array);
    ExpectSoon([this] { return Outside("physical"); }, tally.physical);
    ExpectSoon([this] { return Outside("host_pinned"); }, tally.host_pinned);
    EXPECT_EQ(CountedBytes("array").requested, tally.array);
    EXPECT_EQ(CountedBytes("vmm").requested, tally.physical);
    EXPECT_EQ(CountedBytes("sync").requested, 0u) << "all of it is the arena's";
    const uint64_t reserved = CountedBytes("async").held;
    ExpectSoon([this] { return Outside("pool"); }, reserved);
    ExpectSoon([this] { return Says("held_bytes") - HeldByDevice(); }, 0);
    const auto job = Job();
    EXPECT_LE(job.at("held_bytes").get<uint64_t>() + job.at("outside_bytes").get<uint64_t>(),
              job.at("limit_bytes").get<uint64_t>() + kContext);
  }

  const OraclePage* oracle_ = nullptr;
  CUmemoryPool ordinary_ = nullptr;
  CUmemoryPool exportable_ = nullptr;
};

TEST_F(Churn, Accounting) {
  constexpr int kThreads = 3;
  const uint64_t calls = FromEnvironment("SLUICE_TEST_CALLS", 3000);
  const uint64_t rounds = 10;
  const CUfunction fill = Kernel("fill");
  std::vector<std::unique_ptr<Worker>> workers;
  for (uint64_t i = 0; i < kThreads; ++i) {
    workers.push_back(std::make_unique<Worker>(context_, fill, ordinary_, exportable_,
                                               FromEnvironment("SLUICE_TEST_SEED", 1) * 100 + i));
  }
  uint64_t refused = 0;
  for (uint64_t round = 0; round < rounds && !HasFailure(); ++round) {
    std::vector<std::thread> threads;
    for (auto& worker : workers) {
      threads.emplace_back([&worker, calls] { worker->Run(calls / rounds / kThreads); });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_CU(cuCtxSynchronize());
    Tally sum;
    refused = 0;
    for (const auto& worker : workers) {
      sum.array += worker->tally().array;
      sum.physical += worker->tally().physical;
      sum.host_pinned += worker->tally().host_pinned;
      refused += worker->refused();
    }
    ExpectAllAgree(sum);
  }
  for (auto& worker : workers) worker->Clear();
  ASSERT_CU(cuCtxSynchronize());
  ExpectAllAgree({});
  printf("calls=%llu\nrefused=%llu\n", static_cast<unsigned long long>(calls),  // NOLINT
         static_cast<unsigned long long>(refused));                             // NOLINT
}

}  // namespace
}  // namespace sluice::hooks
