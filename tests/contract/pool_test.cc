// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/contract/fixture.h"
#include "tests/contract/lent_memory.h"

namespace sluice::contract {
namespace {

constexpr size_t kMiB = 1u << 20;
/// A real driver's pool takes pieces of this size of the GPU.
const size_t kPiece = RealDriver() ? 32 * kMiB : kMiB;

class Pool : public ContextTest {
 protected:
  void SetUp() override {
    ContextTest::SetUp();
    ASSERT_CU(cuDeviceGetDefaultMemPool(&pool_, 0));
    ASSERT_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(cuStreamCreate(&other_, CU_STREAM_NON_BLOCKING));
  }
  CUdeviceptr AllocAsync(size_t bytes, CUstream stream) {
    CUdeviceptr pointer = 0;
    EXPECT_CU(cuMemAllocAsync(&pointer, bytes, stream));
    return pointer;
  }
  uint64_t Attribute(CUmemPool_attribute attribute) {
    cuuint64_t value = 0;
    EXPECT_CU(cuMemPoolGetAttribute(pool_, attribute, &value));
    return value;
  }
  void SetAttribute(CUmemPool_attribute attribute, cuuint64_t value) {
    EXPECT_CU(cuMemPoolSetAttribute(pool_, attribute, &value));
  }
  CUmemoryPool pool_ = nullptr;
  CUstream stream_ = nullptr;
  CUstream other_ = nullptr;
};

TEST_F(Pool, ReusesOnTheSameStreamAtOnce) {
  SharedWord word;
  ASSERT_CU(cuStreamWaitValue64_v2(stream_, word.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  const CUdeviceptr a = AllocAsync(kMiB, stream_);
  ASSERT_CU(Fill(a, 1, 16, stream_));
  ASSERT_CU(cuMemFreeAsync(a, stream_));
  EXPECT_EQ(AllocAsync(kMiB, stream_), a);
  word.Store(1);
  ASSERT_CU(cuStreamSynchronize(stream_));
}

TEST_F(Pool, OtherStreamsWaitForCompletion) {
  SharedWord word;
  ASSERT_CU(cuStreamWaitValue64_v2(stream_, word.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  const CUdeviceptr a = AllocAsync(kMiB, stream_);
  ASSERT_CU(Fill(a, 1, 16, stream_));
  ASSERT_CU(cuMemFreeAsync(a, stream_));
  const CUdeviceptr b = AllocAsync(kMiB, other_);
  EXPECT_NE(a, b);
  ASSERT_CU(cuMemFreeAsync(b, other_));
  word.Store(1);
  CUevent event = nullptr;
  ASSERT_CU(cuEventCreate(&event, 0));
  ASSERT_CU(cuEventRecord(event, stream_));
  while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) {  // a query is no synchronisation point
  }
  const CUdeviceptr c = AllocAsync(2 * kMiB, other_);
  EXPECT_EQ(c, std::min(a, b));  // both blocks, now one
}

TEST_F(Pool, AnEventDependencyAllowsReuse) {
  SharedWord word;
  ASSERT_CU(cuStreamWaitValue64_v2(stream_, word.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  const CUdeviceptr a = AllocAsync(kMiB, stream_);
  ASSERT_CU(Fill(a, 1, 16, stream_));
  ASSERT_CU(cuMemFreeAsync(a, stream_));
  CUevent event = nullptr;
  ASSERT_CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  ASSERT_CU(cuEventRecord(event, stream_));
  ASSERT_CU(cuStreamWaitEvent(other_, event, 0));
  EXPECT_EQ(AllocAsync(kMiB, other_), a);
  word.Store(1);
  ASSERT_CU(cuCtxSynchronize());
}

TEST_F(Pool, CountsAndGivesBackAtSynchronisation) {
  const size_t before = FreeBytes();
  const CUdeviceptr a = AllocAsync(3 * kMiB, stream_);
  EXPECT_EQ(Attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 3 * kMiB);
  EXPECT_EQ(Attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), RealDriver() ? kPiece : 3 * kMiB);
  EXPECT_LE(FreeBytes() + 3 * kMiB, before + Slack());
  ASSERT_CU(cuMemFreeAsync(a, stream_));
  EXPECT_EQ(Attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
  EXPECT_EQ(Attribute(CU_MEMPOOL_ATTR_USED_MEM_HIGH), 3 * kMiB);
  SetAttribute(CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0);
  EXPECT_EQ(Attribute(CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0u);
  EXPECT_GE(Attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 3 * kMiB);  // still
  ASSERT_CU(cuStreamSynchronize(stream_));
  EXPECT_GE(FreeBytes() + Slack(), before);
  EXPECT_EQ(Attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0u);
}

TEST_F(Pool, HonoursTheReleaseThreshold) {
  SetAttribute(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 2 * kPiece);
  const CUdeviceptr a = AllocAsync(5 * kPiece, stream_);
  ASSERT_CU(cuMemFreeAsync(a, stream_));
  ASSERT_CU(cuCtxSynchronize());
  // A block may lie in one piece that goes as a whole.
  const uint64_t kept = Attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
  EXPECT_LE(kept, 2 * kPiece);
  Answer("pieces_kept_of_five_with_a_threshold_of_two", std::to_string(kept / kPiece));
  ASSERT_CU(cuMemPoolTrimTo(pool_, 0));
  EXPECT_EQ(Attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0u);
  SetAttribute(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 0);
}

TEST_F(Pool, FailsOnlyAfterGivingBackWhatItCan) {
  OnlySimulated("it fills a GPU whose size it knows");
  const CUdeviceptr a = AllocAsync(20 * kMiB, stream_);
  const CUdeviceptr b = AllocAsync(20 * kMiB, other_);
  CUdeviceptr c = 0;
  EXPECT_EQ(cuMemAllocAsync(&c, 30 * kMiB, stream_), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_CU(cuMemFreeAsync(a, stream_));
  ASSERT_CU(cuMemFreeAsync(b, other_));
  // Two pieces of 20 MiB are idle; 50 MiB in one piece exist once they were given back.
  ASSERT_CU(cuMemAllocAsync(&c, 50 * kMiB, stream_));
  ASSERT_CU(cuMemFreeAsync(c, stream_));
  ASSERT_CU(cuCtxSynchronize());
}

TEST_F(Pool, TheLegacyStreamFreesBehindAllBlockingStreams) {
  SharedWord word;
  CUstream blocking = nullptr;
  ASSERT_CU(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  const CUdeviceptr a = AllocAsync(kMiB, blocking);
  ASSERT_CU(cuStreamWaitValue64_v2(blocking, word.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(Fill(a, 1, 16, blocking));
  ASSERT_CU(cuMemFreeAsync(a, nullptr));
  EXPECT_NE(AllocAsync(kMiB, other_), a);  // the kernel has not run yet
  word.Store(1);
  ASSERT_CU(cuCtxSynchronize());
}

TEST_F(Pool, NothingIsNoError) {
  CUdeviceptr a = 99;
  EXPECT_CU(cuMemAllocAsync(&a, 0, stream_));
  AnswerIf("nothing_has_an_address", a != 0);
  EXPECT_CU(cuMemFreeAsync(a, stream_));
  ASSERT_CU(cuStreamSynchronize(stream_));
}

TEST_F(Pool, RefusesWhatIsNotItsOwn) {
  CUdeviceptr a = AllocAsync(kMiB, stream_);
  EXPECT_EQ(cuMemFreeAsync(a + 512, stream_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemFreeAsync(a, stream_));
  EXPECT_EQ(cuMemFreeAsync(a, stream_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocFromPoolAsync(&a, 4096, nullptr, stream_), CUDA_ERROR_INVALID_VALUE);
  // A synchronously allocated block may be freed in stream order.
  const CUdeviceptr plain = Alloc(4096);
  EXPECT_CU(cuMemFreeAsync(plain, stream_));
  // And the other way round, without an implicit synchronisation.
  EXPECT_CU(cuMemFree_v2(AllocAsync(4096, stream_)));
}

}  // namespace
}  // namespace sluice::contract
