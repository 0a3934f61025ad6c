// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// Memory words between a job and a daemon that has no context: in shared host memory that the job
// registered, and in lent device memory.
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "tests/contract/fixture.h"
#include "tests/contract/lent_memory.h"

namespace sluice::contract {
namespace {

constexpr unsigned kShared = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;

/// Knows nothing of the driver: shows each value of word 0 in word 1 with the time it was seen in
/// word 2. Ends at ~0.
int Watch() {
  SharedFile file(kPassedFd);
  uint64_t last = 0;
  WriteToTest(1);
  while (last != ~uint64_t{0}) {
    const uint64_t value = file.words[0].load(std::memory_order_acquire);
    if (value == last) continue;
    last = value;
    file.words[2].store(NowNs());
    file.words[1].store(value, std::memory_order_release);
  }
  return 0;
}
const bool kWatch = AddRole("watch", Watch);

class Words : public ContextTest {
 protected:
  void SetUp() override {
    ContextTest::SetUp();
    ASSERT_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  }
  CUstream stream_ = nullptr;
};

TEST_F(Words, InRegisteredHostMemoryAreSeenBehindTheWorkOnly) {
  SharedFile file;
  ASSERT_CU(cuMemHostRegister_v2(file.words, 4096, kShared));
  CUdeviceptr word = 0;
  ASSERT_CU(cuMemHostGetDevicePointer_v2(&word, file.words, 0));
  AnswerIf("device_address_is_the_host_address", word == file.address(0));
  OtherProcess watcher("watch", file.fd);
  ASSERT_EQ(watcher.Read(), 1u);

  SharedWord gate;
  CUdeviceptr flag = gate.device();
  ASSERT_CU(Launch("wait_flag", {&flag}, stream_));
  ASSERT_CU(cuStreamWriteValue64_v2(stream_, word, 7, 0));
  ASSERT_EQ(cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(file.words[0].load(), 0u);
  gate.Store(1);
  EXPECT_TRUE(Eventually([&] { return file.words[1].load() == 7; }));
  ASSERT_CU(cuStreamSynchronize(stream_));

  // Each round starts on an idle GPU. Where another process computes, this one lost its turn at the
  // end of the round before and gets it back after the other's time slices: a few milliseconds,
  // for any work. So the same is asked of an empty kernel and its synchronisation, which knows of
  // no word; what a word costs is the difference. Neither the test nor the watcher pauses.
  std::vector<double> us;
  std::vector<double> kernel_us;
  const CUfunction nothing = Kernel("nothing");
  const int rounds = RealDriver() ? 1000 : 50;
  for (int i = 0; i < rounds; ++i) {
    const auto value = static_cast<uint64_t>(100 + i);
    const uint64_t begin = NowNs();
    ASSERT_CU(cuStreamWriteValue64_v2(stream_, word, value, 0));
    while (file.words[1].load(std::memory_order_acquire) != value) {
      ASSERT_LT(NowNs() - begin, 10'000'000'000u) << "the word was never seen";
    }
    us.push_back(static_cast<double>(file.words[2].load() - begin) / 1e3);
    const uint64_t launched = NowNs();
    ASSERT_CU(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr));
    ASSERT_CU(cuStreamSynchronize(stream_));
    kernel_us.push_back(static_cast<double>(NowNs() - launched) / 1e3);
  }
  const auto tell = [](const std::string& what, std::vector<double>& all) {
    std::sort(all.begin(), all.end());
    Measure(what + ".least", all.front());
    Measure(what + ".p50", all[all.size() / 2]);
    Measure(what + ".p99", all[all.size() * 99 / 100]);
  };
  tell("write_to_seen_us", us);
  tell("empty_kernel_us", kernel_us);
  file.words[0].store(~uint64_t{0});
  EXPECT_EQ(watcher.Join(), 0);
  ASSERT_CU(cuMemHostUnregister(file.words));
}

/// Maps the passed memory and reads its first word until that is what it was told.
int WatchDeviceWord() {
  if (!StartContext()) return 1;
  const size_t bytes = ReadFromTest();
  const CUmemGenericAllocationHandle handle = ImportMemory(kPassedFd);
  Mapping mapping(handle, bytes);
  if (mapping.result() != CUDA_SUCCESS) return 1;
  const uint64_t wanted = ReadFromTest();
  uint64_t value = 0;
  const uint64_t begin = NowNs();
  while (value != wanted && NowNs() - begin < 9'000'000'000u) {
    cuMemcpyDtoH_v2(&value, mapping.address(), sizeof value);
  }
  WriteToTest(value);
  return 0;
}
const bool kWatchDevice = AddRole("watch_device", WatchDeviceWord);

TEST_F(Words, InLentDeviceMemoryAreSeenByAnotherProcess) {
  const size_t bytes = Granularity();
  const CUmemGenericAllocationHandle handle = CreateMemory(bytes);
  const int fd = ExportMemory(handle);
  {
    Mapping mapping(handle, bytes);
    ASSERT_CU(mapping.result());
    ASSERT_CU(cuMemsetD32_v2(mapping.address(), 0, 2));
    ASSERT_CU(cuCtxSynchronize());
    OtherProcess watcher("watch_device", fd);
    watcher.Write(bytes);
    watcher.Write(9);
    ASSERT_CU(cuStreamWriteValue64_v2(stream_, mapping.address(), 9, 0));
    EXPECT_EQ(watcher.Read(), 9u);
    EXPECT_EQ(watcher.Join(), 0);
  }
  close(fd);
  ASSERT_CU(cuMemRelease(handle));
}

/// Will write word 0 of the passed file once a flag that nobody raises is up.
int PromiseAWord() {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUstream stream = nullptr;
  if (!StartContext() || cuModuleLoadData(&module, KernelImage().c_str()) != CUDA_SUCCESS ||
      cuModuleGetFunction(&function, module, "wait_flag") != CUDA_SUCCESS ||
      cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
    return 1;
  }
  SharedFile file(kPassedFd);
  CUdeviceptr word = 0;
  if (cuMemHostRegister_v2(file.words, 4096, kShared) != CUDA_SUCCESS ||
      cuMemHostGetDevicePointer_v2(&word, file.words, 0) != CUDA_SUCCESS) {
    return 1;
  }
  CUdeviceptr flag = word + 64;
  void* params[] = {&flag};
  if (cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr) != CUDA_SUCCESS ||
      cuStreamWriteValue64_v2(stream, word, 1, 0) != CUDA_SUCCESS) {
    return 1;
  }
  WriteToTest(1);
  ReadFromTest();
  return 0;
}
const bool kPromise = AddRole("promise", PromiseAWord);

TEST_F(Words, AStoreOfTheHostReleasesWhoeverWaitsForAKilledProcess) {
  SharedFile file;
  ASSERT_CU(cuMemHostRegister_v2(file.words, 4096, kShared));
  CUdeviceptr word = 0;
  ASSERT_CU(cuMemHostGetDevicePointer_v2(&word, file.words, 0));
  OtherProcess signaller("promise", dup(file.fd));
  ASSERT_EQ(signaller.Read(), 1u);
  const CUdeviceptr memory = Alloc(64);
  ASSERT_CU(cuStreamWaitValue64_v2(stream_, word, 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(Fill(memory, 21, 1, stream_));
  signaller.Kill();
  signaller.Join();
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(file.words[0].load(), 0u);
  file.words[0].store(1, std::memory_order_release);
  ASSERT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(Read32(memory), 21u);  // the context is none the worse
  ASSERT_CU(cuMemHostUnregister(file.words));
}

}  // namespace
}  // namespace sluice::contract
