// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/unit/intercept/client_fixture.h"

namespace sluice::test {
namespace {

using protocol::FrameType;
using protocol::OpKind;

class ClientMemory : public ClientTest {};

TEST_F(ClientMemory, BlocksAreAlignedDisjointAndReused) {
  const CUdeviceptr a = AllocAsync(1000);
  const CUdeviceptr b = AllocAsync(1);
  EXPECT_EQ(a % 512, 0u);
  EXPECT_EQ(b, a + 1024);
  EXPECT_EQ(client->FreeAsync(a, FakeDriver::Stream(1)), CUDA_SUCCESS);
  EXPECT_EQ(AllocAsync(1024), a) << "the same stream may use its own frees at once";
  EXPECT_EQ(daemon->Count(FrameType::kLease), 1u) << "one unit holds all of it";
}

TEST_F(ClientMemory, WhatIsNotAllowedIsSaidAsCudaSaysIt) {
  CUdeviceptr at = 0;
  EXPECT_EQ(client->Alloc(&at, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(client->AllocAsync(nullptr, 1, FakeDriver::Stream(1)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(client->AllocAsync(&at, 1, reinterpret_cast<CUstream>(0x33)),
            CUDA_ERROR_INVALID_HANDLE);
  const CUdeviceptr a = AllocAsync(2048);
  EXPECT_EQ(client->FreeAsync(a + 512, FakeDriver::Stream(1)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(client->FreeAsync(a + 3, FakeDriver::Stream(1)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(client->FreeAsync(a, FakeDriver::Stream(1)), CUDA_SUCCESS);
  EXPECT_EQ(client->FreeAsync(a, FakeDriver::Stream(1)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(client->Free(a), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(ClientMemory, NothingInStreamOrderIsTheDriversAffair) {
  CUdeviceptr at = 0;
  EXPECT_EQ(client->AllocAsync(&at, 0, FakeDriver::Stream(1)), CUDA_SUCCESS);
  EXPECT_EQ(at, FakeDriver::kGraphMemory) << "what the driver gave";
  EXPECT_EQ(daemon->Count(FrameType::kLease), 0u);
}

TEST_F(ClientMemory, ForeignPointersGoToTheDriver) {
  AllocAsync(512);
  EXPECT_EQ(client->Free(0x7000), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(client->FreeAsync(0x8000, FakeDriver::Stream(1)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(driver.foreign_frees, (std::vector<uint64_t>{0x7000, 0x8000}));
}

TEST_F(ClientMemory, AnotherStreamGetsABlockOnlyWhenItsMarkIsReached) {
  const CUstream s1 = FakeDriver::Stream(1);
  const CUstream s2 = FakeDriver::Stream(2);
  const CUdeviceptr a = AllocAsync(32 * kUnit, s1);  // the whole pool
  EXPECT_EQ(client->FreeAsync(a, s1), CUDA_SUCCESS);
  daemon->WaitReady();
  // s2's allocation drains in the end: only the GPU's progress can make it succeed.
  driver.immediate = true;
  driver.RunAll();
  EXPECT_EQ(AllocAsync(32 * kUnit, s2), a);
}

TEST_F(ClientMemory, TheDriverIsAskedOnceAboutADefaultStream) {
  Start({});
  for (const CUstream stream : {CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    AllocAsync(512, stream);
    const int asked = driver.ids_asked;
    const CUdeviceptr at = AllocAsync(512, stream);
    EXPECT_EQ(client->FreeAsync(at, stream), CUDA_SUCCESS);
    EXPECT_EQ(driver.ids_asked, asked);
  }
}

TEST_F(ClientMemory, ADefaultStreamIsAnotherOneInEachContext) {
  Start({});
  const CUdeviceptr a = AllocAsync(512, CU_STREAM_LEGACY);
  EXPECT_EQ(client->FreeAsync(a, CU_STREAM_LEGACY), CUDA_SUCCESS);
  driver.context = reinterpret_cast<CUcontext>(0xe2);
  EXPECT_NE(AllocAsync(512, CU_STREAM_LEGACY), a) << "nothing says that the GPU is done with it";
  driver.context = reinterpret_cast<CUcontext>(0xc0);
  EXPECT_EQ(AllocAsync(512, CU_STREAM_LEGACY), a);
}

TEST_F(ClientMemory, AsyncFreesAreMarkedByBytesNotByBlock) {
  Start({.unit_bytes = 1 << 20, .handles = 4, .units_per_handle = 8});
  AllocAsync(512);
  daemon->daemon->flags = protocol::kPressure;
  for (int i = 0; i < 100; ++i) {
    const CUdeviceptr at = AllocAsync(512);
    EXPECT_EQ(client->FreeAsync(at, FakeDriver::Stream(1)), CUDA_SUCCESS);
  }
  EXPECT_EQ(driver.marks, 0);
  for (int i = 0; i < 2; ++i) {
    const CUdeviceptr at = AllocAsync(4 << 20);
    EXPECT_EQ(client->FreeAsync(at, FakeDriver::Stream(1)), CUDA_SUCCESS);
  }
  EXPECT_GE(driver.marks, 1);
  EXPECT_LE(driver.marks, 2);
  EXPECT_FALSE(driver.unrelaxed_call);
}

TEST_F(ClientMemory, SynchronousBlocksSynchroniseWhenFreed) {
  CUdeviceptr a = 0;
  EXPECT_EQ(client->Alloc(&a, 100), CUDA_SUCCESS);
  EXPECT_EQ(driver.synchronised, 0);
  EXPECT_EQ(client->Free(a), CUDA_SUCCESS);
  EXPECT_EQ(driver.synchronised, 1);
  const CUdeviceptr b = AllocAsync(100);
  EXPECT_EQ(client->Free(b), CUDA_SUCCESS);
  EXPECT_EQ(driver.synchronised, 1) << "cuMemFree of a stream-ordered block is a synced free";
  EXPECT_EQ(client->Alloc(&a, 100), CUDA_SUCCESS);
  driver.synchronise_result = CUDA_ERROR_LAUNCH_FAILED;
  EXPECT_EQ(client->Free(a), CUDA_ERROR_LAUNCH_FAILED) << "the GPU may still use it";
  driver.synchronise_result = CUDA_SUCCESS;
  EXPECT_EQ(client->Free(a), CUDA_SUCCESS);
}

TEST_F(ClientMemory, SynchronousBlocksNeverComeFromUnsyncedFrees) {
  const CUdeviceptr a = AllocAsync(512);
  EXPECT_EQ(client->FreeAsync(a, FakeDriver::Stream(1)), CUDA_SUCCESS);
  CUdeviceptr b = 0;
  EXPECT_EQ(client->Alloc(&b, 512), CUDA_SUCCESS);
  EXPECT_NE(a, b);
}

TEST_F(ClientMemory, PitchIsAWholeGranule) {
  CUdeviceptr at = 0;
  size_t pitch = 0;
  EXPECT_EQ(client->AllocPitch(&at, &pitch, 700, 3, 4), CUDA_SUCCESS);
  EXPECT_EQ(pitch, 1024u);
  size_t bytes = 0;
  CUdeviceptr base = 0;
  EXPECT_EQ(client->AddressRange(&base, &bytes, at + 2000), CUDA_SUCCESS);
  EXPECT_EQ(base, at);
  EXPECT_EQ(bytes, 3072u);
  EXPECT_EQ(client->AllocPitch(&at, &pitch, 700, 3, 5), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(client->AllocPitch(&at, &pitch, ~size_t{0}, 3, 4), CUDA_ERROR_INVALID_VALUE);
}

// Rows of 512 bytes whose sum is 512 again, if one forgets what it carries.
TEST_F(ClientMemory, RowsWhoseSumHasNoNumberAreRefused) {
  CUdeviceptr at = 0;
  size_t pitch = 0;
  constexpr size_t kRows = (size_t{1} << 55) + 1;
  EXPECT_EQ(client->AllocPitch(&at, &pitch, 512, kRows, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(at, 0u);
  EXPECT_EQ(pitch, 0u);
}

TEST_F(ClientMemory, OverTheLimitIsDeniedAtOnceAndSaidOnce) {
  Start({.limit_units = 8});
  const CUdeviceptr a = AllocAsync(8 * kUnit);
  testing::internal::CaptureStderr();
  CUdeviceptr b = 0;
  EXPECT_EQ(client->AllocAsync(&b, 512, FakeDriver::Stream(1)), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(client->AllocAsync(&b, 512, FakeDriver::Stream(1)), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "sluice: over the limit of this job\n");
  EXPECT_EQ(client->Free(a), CUDA_SUCCESS);
  EXPECT_EQ(AllocAsync(512), a);
}

TEST_F(ClientMemory, MoreThanThePoolIsRefusedWithoutAsking) {
  AllocAsync(512);
  testing::internal::CaptureStderr();
  CUdeviceptr at = 0;
  EXPECT_EQ(client->AllocAsync(&at, 33 * kUnit, FakeDriver::Stream(1)), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(client->AllocAsync(&at, ~size_t{0}, FakeDriver::Stream(1)), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(
      Contains(testing::internal::GetCapturedStderr(), "more than the whole pool of 2.0 MiB"));
  EXPECT_EQ(daemon->Count(FrameType::kLease), 1u);
}

TEST_F(ClientMemory, ScatteredFreeUnitsAreExchangedForARunThatFits) {
  driver.immediate = true;
  Start({.handles = 4, .units_per_handle = 8, .limit_units = 16});
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(AllocAsync(kUnit));
  for (int i = 0; i < 16; i += 2) {
    EXPECT_EQ(client->FreeAsync(blocks[static_cast<size_t>(i)], FakeDriver::Stream(1)),
              CUDA_SUCCESS);
  }
  // Eight single units are free; four in a row are not, and the limit leaves no room for more.
  AllocAsync(4 * kUnit);
  EXPECT_GE(daemon->Count(FrameType::kRelease), 1u);
  EXPECT_LE(daemon->held_units(), 16u);
}

/// Units come and go, and the mapping of the pool stays: no driver call is made for any of it.
TEST_F(ClientMemory, NothingIsMappedOnceTheSessionIsOpen) {
  driver.immediate = true;
  Start({.handles = 4, .units_per_handle = 8, .limit_units = 16});
  EXPECT_EQ(client->FreeAsync(AllocAsync(512), FakeDriver::Stream(1)), CUDA_SUCCESS);
  static int calls = 0;
  calls = 0;
  driver.table().cuMemMap = [](CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
                               unsigned long long) {  // NOLINT
    ++calls;
    return CUDA_SUCCESS;
  };
  driver.table().cuMemUnmap = [](CUdeviceptr, size_t) {
    ++calls;
    return CUDA_SUCCESS;
  };
  driver.table().cuMemSetAccess = [](CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) {
    ++calls;
    return CUDA_SUCCESS;
  };
  for (int iteration = 0; iteration < 10; ++iteration) {
    std::vector<CUdeviceptr> blocks;
    for (int i = 0; i < 16; ++i) blocks.push_back(AllocAsync(kUnit));
    for (size_t i = 0; i < 16; i += 2) {
      EXPECT_EQ(client->FreeAsync(blocks[i], FakeDriver::Stream(1)), CUDA_SUCCESS);
    }
    const CUdeviceptr large = AllocAsync(4 * kUnit);
    EXPECT_EQ(client->FreeAsync(large, FakeDriver::Stream(1)), CUDA_SUCCESS);
    for (size_t i = 1; i < 16; i += 2) {
      EXPECT_EQ(client->FreeAsync(blocks[i], FakeDriver::Stream(1)), CUDA_SUCCESS);
    }
  }
  EXPECT_GE(daemon->Count(FrameType::kRelease), 1u);
  EXPECT_GE(daemon->Count(FrameType::kLease), 17u);
  EXPECT_EQ(calls, 0);
}

TEST_F(ClientMemory, RecordsSayWhatHappenedWhere) {
  const CUstream s2 = FakeDriver::Stream(2);
  const CUdeviceptr a = AllocAsync(1000, s2);
  EXPECT_EQ(client->FreeAsync(a, FakeDriver::Stream(3)), CUDA_SUCCESS);
  EXPECT_EQ(client->Copy(77, s2, [] { return CUDA_SUCCESS; }), CUDA_SUCCESS);
  EXPECT_EQ(client->Copy(78, s2, [] { return CUDA_ERROR_INVALID_VALUE; }),
            CUDA_ERROR_INVALID_VALUE);
  daemon->WaitReady();
  const auto records = Records();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].kind, static_cast<uint8_t>(OpKind::kAlloc));
  EXPECT_EQ(records[0].value, 1024u);
  EXPECT_EQ(records[1].kind, static_cast<uint8_t>(OpKind::kFree));
  EXPECT_NE(records[1].stream, records[0].stream) << "the free stream counts";
  EXPECT_EQ(records[2].kind, static_cast<uint8_t>(OpKind::kCopy));
  EXPECT_EQ(records[2].value, 77u);
  EXPECT_EQ(records[2].stream, records[0].stream);
}

TEST_F(ClientMemory, FreedBlocksArePoisonedInStreamOrder) {
  Start({}, {.poison = true});
  const CUdeviceptr a = AllocAsync(1000);
  EXPECT_EQ(client->FreeAsync(a, FakeDriver::Stream(4)), CUDA_SUCCESS);
  ASSERT_EQ(driver.memsets.size(), 1u);
  EXPECT_EQ(driver.memsets[0].address, a);
  EXPECT_EQ(driver.memsets[0].value, 0x7fc0deadu);
  EXPECT_EQ(driver.memsets[0].words, 256u);
  EXPECT_EQ(driver.memsets[0].stream, FakeDriver::Stream(4));
}

TEST_F(ClientMemory, WhatIsCapturedIsTheGraphsAndNeverMarked) {
  const CUstream s = FakeDriver::Stream(1);
  const CUdeviceptr a = AllocAsync(512, s);
  const auto begin = [&] {
    driver.capturing.insert(s);
    return CUDA_SUCCESS;
  };
  EXPECT_EQ(client->CaptureBegin(s, begin), CUDA_SUCCESS);
  CUdeviceptr graphs = 0;
  EXPECT_EQ(client->AllocAsync(&graphs, 512, s), CUDA_SUCCESS);
  EXPECT_EQ(graphs, FakeDriver::kGraphMemory) << "the driver's";
  driver.foreign_frees.clear();
  static_cast<void>(client->FreeAsync(graphs, s));
  EXPECT_EQ(driver.foreign_frees.size(), 1u);
  EXPECT_EQ(client->FreeAsync(a, s), CUDA_ERROR_INVALID_VALUE) << "not the graph's";
  for (int i = 0; i < 100; ++i) Launch("captured", s);
  EXPECT_EQ(driver.marks, 0);
  for (const auto& record : Records()) {
    EXPECT_NE(record.kind, static_cast<uint8_t>(OpKind::kLaunch)) << "it has not happened";
  }
  const auto end = [&] {
    driver.capturing.erase(s);
    return CUDA_SUCCESS;
  };
  EXPECT_EQ(client->CaptureEnd(s, end), CUDA_SUCCESS);
  EXPECT_EQ(client->FreeAsync(a, s), CUDA_SUCCESS);
}

TEST_F(ClientMemory, WithoutACaptureTheDriverIsNotAskedForOne) {
  AllocAsync(512);
  driver.capture_questions = 0;
  for (int i = 0; i < 50; ++i) {
    const CUdeviceptr at = AllocAsync(512);
    Launch("k");
    EXPECT_EQ(client->FreeAsync(at, FakeDriver::Stream(1)), CUDA_SUCCESS);
  }
  EXPECT_EQ(driver.capture_questions, 0);
  // One that could not be begun leaves nothing behind.
  EXPECT_EQ(client->CaptureBegin(FakeDriver::Stream(1), [] { return CUDA_ERROR_INVALID_VALUE; }),
            CUDA_ERROR_INVALID_VALUE);
  AllocAsync(512);
  EXPECT_EQ(driver.capture_questions, 0);
  // One that fails to end is still there.
  const CUstream s = FakeDriver::Stream(1);
  const auto begin = [&] {
    driver.capturing.insert(s);
    return CUDA_SUCCESS;
  };
  EXPECT_EQ(client->CaptureBegin(s, begin), CUDA_SUCCESS);
  EXPECT_EQ(client->CaptureEnd(s, [] { return CUDA_ERROR_INVALID_VALUE; }),
            CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr at = 0;
  EXPECT_EQ(client->AllocAsync(&at, 512, s), CUDA_SUCCESS);
  EXPECT_EQ(at, FakeDriver::kGraphMemory);
}

TEST_F(ClientMemory, ReportsAreConsistent) {
  Start({.limit_units = 16});
  size_t free_bytes = 0;
  size_t total = 0;
  EXPECT_EQ(client->MemGetInfo(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, 16 * kUnit);
  EXPECT_EQ(free_bytes, total);
  const CUdeviceptr a = AllocAsync(3 * kUnit);
  EXPECT_EQ(client->MemGetInfo(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes, 13 * kUnit);
  EXPECT_EQ(client->DeviceTotalMem(&total, 0), CUDA_SUCCESS);
  EXPECT_EQ(total, 16 * kUnit);

  auto* pool = reinterpret_cast<CUmemoryPool>(0x9001);
  auto* other = reinterpret_cast<CUmemoryPool>(0x9002);
  uint64_t value = 0;
  const auto get = [&](CUmemPool_attribute attribute, CUmemoryPool which) {
    EXPECT_EQ(client->PoolGetAttribute(which, attribute, &value), CUDA_SUCCESS);
    return value;
  };
  EXPECT_EQ(get(CU_MEMPOOL_ATTR_USED_MEM_CURRENT, pool), 3 * kUnit);
  EXPECT_EQ(get(CU_MEMPOOL_ATTR_USED_MEM_CURRENT, other), 44u);
  EXPECT_EQ(get(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, pool), 44u);
  EXPECT_EQ(client->Free(a), CUDA_SUCCESS);
  EXPECT_EQ(get(CU_MEMPOOL_ATTR_USED_MEM_CURRENT, pool), 0u);
  EXPECT_EQ(get(CU_MEMPOOL_ATTR_USED_MEM_HIGH, pool), 3 * kUnit);
  EXPECT_EQ(get(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, pool), 3 * kUnit);
  value = 1;
  EXPECT_EQ(client->PoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value),
            CUDA_ERROR_INVALID_VALUE);
  value = 0;
  EXPECT_EQ(client->PoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value), CUDA_SUCCESS);
  EXPECT_EQ(get(CU_MEMPOOL_ATTR_USED_MEM_HIGH, pool), 0u);
  EXPECT_EQ(client->PoolTrimTo(pool, kUnit), CUDA_SUCCESS);
  EXPECT_EQ(get(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, pool), kUnit);
  daemon->Wait(FrameType::kRelease, 1);
}

// Neighbours that are freed one after the other become one block, which waits for its newest mark:
// what the GPU has passed must leave it before.
TEST_F(ClientMemory, AStreamThatKeepsFreeingLeavesItsSpaceToOthers) {
  driver.immediate = true;
  for (int i = 0; i < 200; ++i) {
    const CUdeviceptr a = AllocAsync(kUnit, FakeDriver::Stream(1));
    Launch("k", FakeDriver::Stream(2));
    EXPECT_EQ(client->FreeAsync(a, FakeDriver::Stream(2)), CUDA_SUCCESS);
  }
  EXPECT_LE(daemon->held_units(), 20u) << "a mark comes every 16 launches";
}

TEST_F(ClientMemory, ADestroyedStreamLeavesItsFreesMarked) {
  const CUstream s = FakeDriver::Stream(5);
  const CUdeviceptr a = AllocAsync(kUnit, s);
  EXPECT_EQ(client->FreeAsync(a, s), CUDA_SUCCESS);
  EXPECT_EQ(client->StreamDestroy(s), CUDA_SUCCESS);
  EXPECT_EQ(driver.marks, 1);
  // The handle comes back for a new stream: it is another one, and the old frees are not its own.
  CUdeviceptr b = AllocAsync(kUnit, s);
  EXPECT_NE(b, a);
  EXPECT_EQ(client->FreeAsync(b, s), CUDA_SUCCESS);
  driver.RunAll();
  EXPECT_EQ(AllocAsync(kUnit, FakeDriver::Stream(6)), a) << "the mark was reached";
}

TEST_F(ClientMemory, SynchronisingCollectsWithoutMarks) {
  const CUdeviceptr a = AllocAsync(kUnit, FakeDriver::Stream(1));
  EXPECT_EQ(client->FreeAsync(a, FakeDriver::Stream(1)), CUDA_SUCCESS);
  EXPECT_EQ(client->StreamSynchronize(FakeDriver::Stream(1)), CUDA_SUCCESS);
  EXPECT_EQ(AllocAsync(kUnit, FakeDriver::Stream(2)), a);
  EXPECT_EQ(client->FreeAsync(a, FakeDriver::Stream(2)), CUDA_SUCCESS);
  EXPECT_EQ(client->ContextSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(AllocAsync(kUnit, FakeDriver::Stream(3)), a);
  EXPECT_EQ(driver.marks, 0);
}

TEST_F(ClientMemory, MoreStreamsThanSlotsStillWork) {
  // Each of 600 streams keeps one unsynced free, so that no slot can be given to another stream.
  Start({.unit_bytes = 1 << 20, .handles = 1, .units_per_handle = 4});
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 600; ++i) blocks.push_back(AllocAsync(512, FakeDriver::Stream(i)));
  for (int i = 0; i < 600; ++i) {
    EXPECT_EQ(client->FreeAsync(blocks[static_cast<size_t>(i)], FakeDriver::Stream(i)),
              CUDA_SUCCESS);
  }
  EXPECT_EQ(client->ContextSynchronize(nullptr), CUDA_SUCCESS);
  AllocAsync(4 << 20, FakeDriver::Stream(700));
}

}  // namespace
}  // namespace sluice::test
