// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "tests/contract/fixture.h"
#include "tests/contract/lent_memory.h"

namespace sluice::contract {
namespace {

class MemOps : public ContextTest {
 protected:
  void SetUp() override {
    ContextTest::SetUp();
    ASSERT_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  }
  CUstream stream_ = nullptr;
};

TEST_F(MemOps, WritesBehindTheWorkOfItsStream) {
  SharedWord gate;
  SharedWord mark;
  ASSERT_CU(cuStreamWaitValue64_v2(stream_, gate.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(cuStreamWriteValue64_v2(stream_, mark.device(), 42, 0));
  EXPECT_EQ(mark.Load(), 0u);
  gate.Store(1);
  EXPECT_TRUE(Eventually([&] { return mark.Load() == 42; }));
}

TEST_F(MemOps, GeqIsCyclicAndSigned) {
  SharedWord word;
  const uint64_t near_wrap = ~uint64_t{0} - 1;
  word.Store(near_wrap);
  // 3 lies ahead of 2^64 - 2, so the wait holds until the counter has wrapped.
  ASSERT_CU(cuStreamWaitValue64_v2(stream_, word.device(), 3, CU_STREAM_WAIT_VALUE_GEQ));
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
  word.Store(4);
  ASSERT_CU(cuStreamSynchronize(stream_));
  // And what lies behind is reached.
  ASSERT_CU(cuStreamWaitValue64_v2(stream_, word.device(), near_wrap, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(cuStreamSynchronize(stream_));
}

TEST_F(MemOps, EqWaitsForTheVeryValue) {
  SharedWord word;
  ASSERT_CU(cuStreamWaitValue64_v2(stream_, word.device(), 5, CU_STREAM_WAIT_VALUE_EQ));
  word.Store(6);
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
  word.Store(5);
  ASSERT_CU(cuStreamSynchronize(stream_));
}

TEST_F(MemOps, WorkOnDeviceMemoryToo) {
  const CUdeviceptr word = Alloc(8);
  ASSERT_CU(cuMemsetD32_v2(word, 0, 2));
  ASSERT_CU(cuCtxSynchronize());
  CUstream other = nullptr;
  ASSERT_CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(cuStreamWaitValue64_v2(stream_, word, 9, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(cuStreamWriteValue64_v2(other, word, 9, 0));
  ASSERT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(Read32(word), 9u);
}

TEST_F(MemOps, RefuseUnregisteredAndMisalignedAddresses) {
  alignas(8) static uint64_t plain;
  SharedWord word;
  EXPECT_EQ(cuStreamWriteValue64_v2(stream_, reinterpret_cast<CUdeviceptr>(&plain), 1, 0),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamWriteValue64_v2(stream_, word.device() + 4, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamWaitValue64_v2(stream_, word.device(), 1, 7), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MemOps, RegisteredSharedFilesAreWrittenInPlace) {
  SharedFile file;
  ASSERT_CU(cuMemHostRegister_v2(file.words, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
  EXPECT_EQ(cuMemHostRegister_v2(file.words, 4096, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CUdeviceptr device = 0;
  ASSERT_CU(cuMemHostGetDevicePointer_v2(&device, file.words, 0));
  ASSERT_CU(cuStreamWriteValue64_v2(stream_, device + 16, 7, 0));
  ASSERT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(file.words[2].load(), 7u);
  uint64_t through_file = 0;
  ASSERT_EQ(pread(file.fd, &through_file, 8, 16), 8);
  EXPECT_EQ(through_file, 7u);
  ASSERT_CU(cuMemHostUnregister(file.words));
  EXPECT_EQ(cuMemHostUnregister(file.words), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  EXPECT_EQ(cuStreamWriteValue64_v2(stream_, device, 7, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MemOps, ARegistrationGoesWithTheContextItWasMadeIn) {
  SharedFile file;
  CUcontext other = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&other, 0, 0));
  ASSERT_CU(cuMemHostRegister_v2(file.words, 4096, CU_MEMHOSTREGISTER_PORTABLE));
  ASSERT_CU(cuCtxDestroy_v2(other));
  ASSERT_CU(cuCtxSetCurrent(context_));
  ASSERT_CU(cuMemHostRegister_v2(file.words, 4096, CU_MEMHOSTREGISTER_PORTABLE));
  CUdeviceptr device = 0;
  ASSERT_CU(cuMemHostGetDevicePointer_v2(&device, file.words, 0));
  ASSERT_CU(cuStreamWriteValue64_v2(stream_, device, 3, 0));
  ASSERT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(file.words[0].load(), 3u);
  ASSERT_CU(cuMemHostUnregister(file.words));
}

TEST_F(MemOps, RegisteredPrivateMemoryKeepsItsContents) {
  constexpr size_t kBytes = 3 * 4096;
  void* at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* bytes = static_cast<unsigned char*>(at);
  memset(bytes, 0x5a, kBytes);
  ASSERT_CU(cuMemHostRegister_v2(bytes + 100, kBytes - 200, 0));
  EXPECT_EQ(bytes[0], 0x5a);
  EXPECT_EQ(bytes[kBytes - 1], 0x5a);
  const CUdeviceptr memory = Alloc(64);
  ASSERT_CU(cuMemcpyHtoDAsync_v2(memory, bytes + 200, 64, stream_));
  ASSERT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(Read32(memory), 0x5a5a5a5au);
  ASSERT_CU(cuMemsetD8Async(memory, 0x11, 64, stream_));
  ASSERT_CU(cuMemcpyDtoHAsync_v2(bytes + 400, memory, 64, stream_));
  ASSERT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(bytes[463], 0x11);
  EXPECT_EQ(bytes[464], 0x5a);
  ASSERT_CU(cuMemHostUnregister(bytes + 100));
  munmap(at, kBytes);
}

TEST_F(MemOps, PinnedCopiesAreAsynchronous) {
  SharedWord gate;
  SharedWord data;
  const CUdeviceptr memory = Alloc(64);
  data.Store(1);
  ASSERT_CU(cuStreamWaitValue64_v2(stream_, gate.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(cuMemcpyHtoDAsync_v2(memory, const_cast<uint64_t*>(data.host()), 8, stream_));
  data.Store(2);  // taken only when the copy runs
  gate.Store(1);
  ASSERT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(Read32(memory), 2u);
}

/// Waits on word 0 of the passed file in a stream, then writes word 1.
int WaitAndAnswer() {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  cuCtxSetCurrent(context);
  SharedFile file(kPassedFd);
  if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
      cuMemHostRegister_v2(file.words, 4096, CU_MEMHOSTREGISTER_PORTABLE) != CUDA_SUCCESS ||
      cuStreamWaitValue64_v2(stream, file.address(0), 1, CU_STREAM_WAIT_VALUE_GEQ) !=
          CUDA_SUCCESS ||
      cuStreamWriteValue64_v2(stream, file.address(1), 2, 0) != CUDA_SUCCESS) {
    return 1;
  }
  WriteToTest(1);
  ReadFromTest();
  return 0;
}
const bool kWaitAndAnswer = AddRole("answer", WaitAndAnswer);

TEST_F(MemOps, SynchroniseProcesses) {
  SharedFile file;
  ASSERT_CU(cuMemHostRegister_v2(file.words, 4096, CU_MEMHOSTREGISTER_PORTABLE));
  OtherProcess other("answer", file.fd);
  EXPECT_EQ(other.Read(), 1u);
  EXPECT_EQ(file.words[1].load(), 0u);
  ASSERT_CU(cuStreamWriteValue64_v2(stream_, file.address(0), 1, 0));
  ASSERT_CU(cuStreamWaitValue64_v2(stream_, file.address(1), 2, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(file.words[1].load(), 2u);
  ASSERT_CU(cuMemHostUnregister(file.words));
}

TEST_F(MemOps, AHostStoreReleasesAWaiterWhoseSignallerDied) {
  SharedFile file;
  OtherProcess other("answer", file.fd);
  EXPECT_EQ(other.Read(), 1u);
  file.words[0].store(1);
  EXPECT_TRUE(Eventually([&] { return file.words[1].load() == 2; }));
}

}  // namespace
}  // namespace sluice::contract
