// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// Copies between GPUs: they need no access of kernels, and take the time of the link.
#include "tests/contract/peers_fixture.h"

namespace sluice::contract {

const char* MachineFile() { return SLUICE_MACHINE_PEERS; }

namespace {

const bool kTwo = NeedGpus("2");

class PeerCopies : public PeersTest {
 protected:
  void SetUp() override {
    PeersTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (int gpu : {1, 0}) {
      memory_[gpu] = Alloc(gpu);
      Fill(gpu, memory_[gpu], Value(gpu));
    }
  }
  void TearDown() override {
    for (int gpu : {0, 1}) {
      if (memory_[gpu] != 0) Free(gpu, memory_[gpu]);
    }
    PeersTest::TearDown();
  }
  static uint32_t Value(int gpu) { return gpu == 0 ? 100 : 200; }
  CUdeviceptr memory_[2] = {};
};

TEST_F(PeerCopies, GoBetweenContexts) {
  Use(0);
  ASSERT_CU(cuMemcpyPeer(memory_[1], context_[1], memory_[0], context_[0], kBytes));
  EXPECT_EQ(Read(1, memory_[1]), All(Value(0)));
  Fill(1, memory_[1], 201);
  // Whichever of the two is current.
  ASSERT_CU(cuMemcpyPeer(memory_[0], context_[0], memory_[1], context_[1], kBytes));
  EXPECT_EQ(Read(0, memory_[0]), All(201));
}

TEST_F(PeerCopies, GoBetweenContextsInAStream) {
  for (int gpu : {0, 1}) {
    Fill(0, memory_[0], 300);
    Use(gpu);
    CUstream stream = nullptr;
    ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(cuMemcpyPeerAsync(memory_[1], context_[1], memory_[0], context_[0], kBytes, stream));
    ASSERT_CU(cuStreamSynchronize(stream));
    EXPECT_EQ(Read(1, memory_[1]), All(300));
    Fill(1, memory_[1], 0);
    Use(gpu);
    ASSERT_CU(cuStreamDestroy_v2(stream));
  }
}

TEST_F(PeerCopies, OfBoxes) {
  CUDA_MEMCPY3D_PEER copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = memory_[0];
  copy.dstDevice = memory_[1];
  copy.srcContext = context_[0];
  copy.dstContext = context_[1];
  copy.srcPitch = copy.dstPitch = 64;
  copy.WidthInBytes = 32;
  copy.Height = 4;
  copy.Depth = 1;
  Use(0);
  ASSERT_CU(cuMemcpy3DPeer(&copy));
  std::vector<uint32_t> expected = All(Value(1));
  for (size_t row = 0; row < 4; ++row) {
    for (size_t word = 0; word < 8; ++word) expected[row * 16 + word] = Value(0);
  }
  EXPECT_EQ(Read(1, memory_[1]), expected);
  copy.srcDevice = memory_[1];
  copy.dstDevice = memory_[0];
  copy.srcContext = context_[1];
  copy.dstContext = context_[0];
  CUstream stream = nullptr;
  Use(1);
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(cuMemcpy3DPeerAsync(&copy, stream));
  ASSERT_CU(cuStreamSynchronize(stream));
  ASSERT_CU(cuStreamDestroy_v2(stream));
  EXPECT_EQ(Read(0, memory_[0]), All(Value(0)));
}

// Unified addressing: the addresses alone say where the memory is.
TEST_F(PeerCopies, AreOrdinaryCopies) {
  Use(0);
  ASSERT_CU(cuMemcpyDtoD_v2(memory_[1], memory_[0], kBytes));
  EXPECT_EQ(Read(1, memory_[1]), All(Value(0)));
  Fill(1, memory_[1], 202);
  ASSERT_CU(cuMemcpy(memory_[0], memory_[1], kBytes));
  EXPECT_EQ(Read(0, memory_[0]), All(202));
  // The host reads and writes a GPU from the context of another one.
  uint32_t word = 0;
  Use(0);
  ASSERT_CU(cuMemcpyDtoH_v2(&word, memory_[1], sizeof word));
  EXPECT_EQ(word, 202u);
  word = 203;
  ASSERT_CU(cuMemcpyHtoD_v2(memory_[1], &word, sizeof word));
  ASSERT_CU(cuCtxSynchronize());  // from pageable memory, it may still be on its way
  EXPECT_EQ(Read(1, memory_[1])[0], 203u);
}

// By the programming guide a copy succeeds in a stream of a GPU that is not the current one's.
TEST_F(PeerCopies, RunInAStreamOfAnotherContext) {
  Use(1);
  CUstream stream = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  Use(0);
  ASSERT_CU(cuMemcpyDtoDAsync_v2(memory_[1], memory_[0], kBytes, stream));
  Use(1);
  ASSERT_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(Read(1, memory_[1]), All(Value(0)));
  ASSERT_CU(cuStreamDestroy_v2(stream));
}

// A copy in the null stream waits for all work of both GPUs.
TEST_F(PeerCopies, InTheNullStreamComeBehindAllWorkOfBothGpus) {
  OnlySimulated("it needs the kernel that takes 20 ms");
  Use(1);
  CUstream stream = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUfunction slow = nullptr;
  CUfunction fill = nullptr;
  ASSERT_CU(cuModuleGetFunction(&slow, module_[1], "slow"));
  ASSERT_CU(cuModuleGetFunction(&fill, module_[1], "fill"));
  ASSERT_CU(cuLaunchKernel(slow, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
  uint32_t value = 500;
  uint64_t words = kWords;
  void* params[] = {&memory_[1], &value, &words};
  ASSERT_CU(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr));
  Use(0);
  ASSERT_CU(cuMemcpyDtoD_v2(memory_[0], memory_[1], kBytes));
  EXPECT_EQ(Read(0, memory_[0]), All(500));
  Use(1);
  ASSERT_CU(cuStreamDestroy_v2(stream));
}

// Each GPU has a clock of its own: that of the context the copy runs in pays.
TEST_F(PeerCopies, TakeTheTimeOfTheLink) {
  OnlySimulated("the machine file says how fast the link is");
  const CUdeviceptr second = Alloc(0);
  const auto passes = [this](int gpu, CUdeviceptr target, CUdeviceptr source) {
    Use(gpu);
    const uint64_t before[] = {Stat("busy_ns", 0), Stat("busy_ns", 1)};
    EXPECT_CU(cuMemcpyDtoD_v2(target, source, kBytes));
    EXPECT_CU(cuCtxSynchronize());
    EXPECT_EQ(Stat("busy_ns", 1 - gpu), before[1 - gpu]);
    return Stat("busy_ns", gpu) - before[gpu];
  };
  constexpr uint64_t kLinkNs = kBytes * 20;  // 50 MB/s
  EXPECT_EQ(passes(0, memory_[1], memory_[0]), kLinkNs);
  EXPECT_EQ(passes(1, memory_[1], memory_[0]), kLinkNs);
  EXPECT_EQ(passes(0, second, memory_[0]), kBytes * 1'000 / 12'000);
  ASSERT_CU(cuCtxEnablePeerAccess(context_[1], 0));  // current is the first
  EXPECT_EQ(passes(0, memory_[0], memory_[1]), kLinkNs);
  Free(0, second);
}

}  // namespace
}  // namespace sluice::contract
