// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// A GPU whose processes share it through MPS and whose copies overlap with kernels (machine_mps):
// the times that events tell, which are the device's own.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <memory>

#include "tests/contract/fixture.h"
#include "tests/contract/nvml.h"

namespace sluice::contract {

const char* MachineFile() { return SLUICE_MACHINE_MPS; }

namespace {

constexpr float kKernelMs = 20;
constexpr size_t kMiB = 1u << 20;
constexpr float kCopyMs = static_cast<float>(kMiB) / 50e6F * 1e3F;

/// Issues work and tells how long the device took for it.
class Timed {
 public:
  explicit Timed(CUstream stream) : stream_(stream) {
    EXPECT_CU(cuEventCreate(&start_, CU_EVENT_DEFAULT));
    EXPECT_CU(cuEventCreate(&end_, CU_EVENT_DEFAULT));
    EXPECT_CU(cuEventRecord(start_, stream_));
  }
  ~Timed() {
    EXPECT_CU(cuEventDestroy_v2(start_));
    EXPECT_CU(cuEventDestroy_v2(end_));
  }
  void End() { EXPECT_CU(cuEventRecord(end_, stream_)); }
  float Ms() { return Since(*this); }
  /// From the start of another to the end of this.
  float Since(const Timed& other) {
    float ms = -1;
    EXPECT_CU(cuEventSynchronize(end_));
    EXPECT_CU(cuEventElapsedTime(&ms, other.start_, end_));
    return ms;
  }

 private:
  CUstream stream_;
  CUevent start_ = nullptr;
  CUevent end_ = nullptr;
};

class Overlap : public ContextTest {
 protected:
  void SetUp() override {
    OnlySimulated("a real one shares and overlaps in its own ways");
    ContextTest::SetUp();
    gate_ = std::make_unique<SharedWord>();
    for (CUstream& stream : streams_) ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(cuMemHostAlloc(&host_, kMiB, 0));
    device_ = Alloc(kMiB);
    ASSERT_CU(cuCtxSynchronize());
  }
  void TearDown() override {
    if (RealDriver()) return;
    for (const CUstream stream : streams_) EXPECT_CU(cuStreamDestroy_v2(stream));
    gate_.reset();
    EXPECT_CU(cuMemFreeHost(host_));
    EXPECT_CU(cuMemFree_v2(device_));
    ContextTest::TearDown();
  }
  /// What follows in these streams waits for Open(), so that it starts at once however slowly it is
  /// issued.
  void Hold(std::initializer_list<CUstream> streams) {
    gate_->Store(0);
    for (const CUstream stream : streams) {
      ASSERT_CU(cuStreamWaitValue64_v2(stream, gate_->device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
    }
  }
  void Open() { gate_->Store(1); }

  std::unique_ptr<SharedWord> gate_;
  CUstream streams_[4] = {};
  void* host_ = nullptr;
  CUdeviceptr device_ = 0;
};

// What the host needs to see that an operation is over is not the device's time.
constexpr float kSlackMs = 8;

TEST_F(Overlap, OneKernelAfterTheOtherInAStream) {
  Hold({streams_[0]});
  Timed all(streams_[0]);
  for (int i = 0; i < 3; ++i) ASSERT_CU(Launch("slow", {}, streams_[0]));
  all.End();
  Open();
  EXPECT_NEAR(all.Ms(), 3 * kKernelMs, kSlackMs);
}

TEST_F(Overlap, ManyShortKernelsTakeTheirDeclaredTime) {
  Timed all(streams_[0]);
  uint32_t value = 0;
  for (int i = 0; i < 1000; ++i) ASSERT_CU(Launch("append", {&device_, &value}, streams_[0]));
  all.End();
  // 2 us each; issuing takes 1 us or more, so the host may set the pace.
  EXPECT_GE(all.Ms(), 1.99F);
  EXPECT_EQ(Read32(device_), 1000u);
}

TEST_F(Overlap, ACopyRunsBesideAKernelOfAnotherStream) {
  Hold({streams_[0], streams_[1]});
  Timed kernel(streams_[0]);
  ASSERT_CU(Launch("slow", {}, streams_[0]));
  kernel.End();
  Timed copy(streams_[1]);
  ASSERT_CU(cuMemcpyHtoDAsync_v2(device_, host_, kMiB, streams_[1]));
  copy.End();
  Open();
  EXPECT_NEAR(kernel.Ms(), kKernelMs, kSlackMs);
  EXPECT_NEAR(copy.Ms(), kCopyMs, kSlackMs);
  EXPECT_LT(copy.Since(kernel), kKernelMs + kCopyMs / 2);
}

TEST_F(Overlap, CopiesOfBothDirectionsOverlapAndOfOneDoNot) {
  const CUdeviceptr other = Alloc(kMiB);
  Hold({streams_[0], streams_[1], streams_[2]});
  Timed in(streams_[0]);
  ASSERT_CU(cuMemcpyHtoDAsync_v2(device_, host_, kMiB / 2, streams_[0]));
  in.End();
  Timed out(streams_[1]);
  void* target = static_cast<unsigned char*>(host_) + kMiB / 2;
  ASSERT_CU(cuMemcpyDtoHAsync_v2(target, other, kMiB / 2, streams_[1]));
  out.End();
  Timed again(streams_[2]);
  ASSERT_CU(cuMemcpyHtoDAsync_v2(other + kMiB / 2, host_, kMiB / 2, streams_[2]));
  again.End();
  Open();
  EXPECT_NEAR(out.Since(in), kCopyMs / 2, kSlackMs);
  EXPECT_NEAR(again.Since(in), kCopyMs, kSlackMs);
  ASSERT_CU(cuMemFree_v2(other));
}

TEST_F(Overlap, TwoStreamsShareTheSmsAsTheirKernelsNeedThem) {
  // `fill` takes two fifths of the SMs, `slow` all.
  Hold({streams_[0], streams_[1]});
  Timed first(streams_[0]);
  ASSERT_CU(Fill(device_, 1, 1, streams_[0]));
  first.End();
  Timed second(streams_[1]);
  ASSERT_CU(Fill(device_ + 64, 2, 1, streams_[1]));
  second.End();
  Open();
  EXPECT_NEAR(second.Since(first), kKernelMs, kSlackMs);
  ASSERT_CU(cuCtxSynchronize());
  Hold({streams_[0], streams_[1]});
  Timed whole(streams_[0]);
  ASSERT_CU(Launch("slow", {}, streams_[0]));
  whole.End();
  Timed other(streams_[1]);
  ASSERT_CU(Launch("slow", {}, streams_[1]));
  other.End();
  Open();
  EXPECT_NEAR(other.Since(whole), 2 * kKernelMs, kSlackMs);
}

TEST_F(Overlap, TheLegacyStreamWaitsForWhatIsUnderWay) {
  CUstream blocking = nullptr;
  ASSERT_CU(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  Hold({blocking});
  Timed kernel(blocking);
  ASSERT_CU(Launch("slow", {}, blocking));
  kernel.End();
  Timed legacy(nullptr);
  ASSERT_CU(cuMemcpyHtoDAsync_v2(device_, host_, kMiB, nullptr));
  legacy.End();
  Open();
  EXPECT_GE(legacy.Since(kernel), kKernelMs + kCopyMs - 0.1F);
  ASSERT_CU(cuStreamDestroy_v2(blocking));
}

TEST_F(Overlap, AnEventCarriesTheTimeFromStreamToStream) {
  CUevent ready = nullptr;
  ASSERT_CU(cuEventCreate(&ready, CU_EVENT_DISABLE_TIMING));
  Hold({streams_[0]});
  Timed kernel(streams_[0]);
  ASSERT_CU(Launch("slow", {}, streams_[0]));
  ASSERT_CU(cuEventRecord(ready, streams_[0]));
  kernel.End();
  ASSERT_CU(cuStreamWaitEvent(streams_[1], ready, 0));
  Timed copy(streams_[1]);
  ASSERT_CU(cuMemcpyHtoDAsync_v2(device_, host_, kMiB, streams_[1]));
  copy.End();
  Open();
  EXPECT_NEAR(copy.Since(kernel), kKernelMs + kCopyMs, kSlackMs);
  ASSERT_CU(cuEventDestroy_v2(ready));
}

TEST_F(Overlap, AFaultEndsWhatIsUnderWay) {
  CUcontext mine = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&mine, 0, 0));
  CUstream stream = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUmodule module = nullptr;
  CUfunction fill = nullptr;
  ASSERT_CU(cuModuleLoadData(&module, KernelImage().c_str()));
  ASSERT_CU(cuModuleGetFunction(&fill, module, "fill"));
  CUdeviceptr nowhere = 0x470000000000;
  uint32_t value = 0;
  uint64_t count = 16;
  void* params[] = {&nowhere, &value, &count};
  ASSERT_CU(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_CU(cuCtxDestroy_v2(mine));
  Timed kernel(streams_[0]);
  ASSERT_CU(Launch("slow", {}, streams_[0]));
  kernel.End();
  EXPECT_NEAR(kernel.Ms(), kKernelMs, kSlackMs);
}

/// Runs `count` kernels of a kind when told to, and says how many microseconds they took.
int RunKernels() {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  cuCtxSetCurrent(context);
  if (cuModuleLoadData(&module, KernelImage().c_str()) != CUDA_SUCCESS) return 1;
  CUdeviceptr target = 0;
  cuMemAlloc_v2(&target, 64);
  WriteToTest(1);
  const char* name = ReadFromTest() == 0 ? "slow" : "fill";
  const uint64_t count = ReadFromTest();
  CUfunction function = nullptr;
  if (cuModuleGetFunction(&function, module, name) != CUDA_SUCCESS) return 1;
  uint32_t value = 1;
  uint64_t words = 1;
  void* params[] = {&target, &value, &words};
  Timed all(nullptr);
  for (uint64_t i = 0; i < count; ++i) {
    cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr);
  }
  all.End();
  WriteToTest(static_cast<uint64_t>(all.Ms() * 1000));
  ReadFromTest();
  return 0;
}
const bool kKernels = AddRole("kernels", RunKernels);

/// How long two processes take that run kernels of a kind at the same time.
uint64_t SlowerOfTwo(uint64_t kind, uint64_t count) {
  OtherProcess first("kernels");
  OtherProcess second("kernels");
  EXPECT_EQ(first.Read(), 1u);
  EXPECT_EQ(second.Read(), 1u);
  for (OtherProcess* process : {&first, &second}) {
    process->Write(kind);
    process->Write(count);
  }
  const uint64_t us = first.Read();
  return std::max(us, second.Read());
}

TEST_F(Overlap, ProcessesShareTheGpuWithoutTakingTurns) {
  const uint64_t switches = Stat("token_switches");
  const uint64_t kernels = Stat("kernels");
  // Both need the whole GPU: each runs at half speed.
  EXPECT_NEAR(static_cast<double>(SlowerOfTwo(0, 10)), 400e3, 60e3);
  // Together they need four fifths of it: each runs as if alone.
  EXPECT_NEAR(static_cast<double>(SlowerOfTwo(1, 10)), 200e3, 60e3);
  EXPECT_EQ(Stat("token_switches"), switches);
  EXPECT_EQ(Stat("kernels"), kernels + 40);
}

TEST_F(Overlap, AClientThatIsKilledFreesItsShare) {
  OtherProcess other("kernels");
  EXPECT_EQ(other.Read(), 1u);
  other.Write(0);
  other.Write(60);
  const uint64_t kernels = Stat("kernels");
  ASSERT_TRUE(Eventually([&] { return Stat("kernels") > kernels; }));
  other.Kill();
  EXPECT_NE(other.Join(), 0);
  // Its executor goes with it, at the latest when somebody needs the clock.
  ASSERT_CU(Launch("slow", {}, streams_[0]));
  ASSERT_CU(cuStreamSynchronize(streams_[0]));
  Timed alone(streams_[0]);
  ASSERT_CU(Launch("slow", {}, streams_[0]));
  alone.End();
  EXPECT_NEAR(alone.Ms(), kKernelMs, kSlackMs);
}

TEST_F(Overlap, NvmlListsClientsOfMps) {
  ASSERT_EQ(NVML(nvmlInit_v2)(), NVML_SUCCESS);
  nvmlDevice_t device = nullptr;
  ASSERT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2)(0, &device), NVML_SUCCESS);
  nvmlProcessInfo_v2_t infos[8];
  unsigned count = 8;
  ASSERT_EQ(NVML(nvmlDeviceGetMPSComputeRunningProcesses_v3)(device, &count, infos), NVML_SUCCESS);
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(infos[0].pid, static_cast<unsigned>(getpid()));
  count = 8;
  ASSERT_EQ(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device, &count, infos), NVML_SUCCESS);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(NVML(nvmlShutdown)(), NVML_SUCCESS);
}

TEST_F(Overlap, TheDeviceSaysSo) {
  int value = 0;
  ASSERT_CU(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 0));
  EXPECT_EQ(value, 2);
  ASSERT_CU(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 0));
  EXPECT_EQ(value, 1);
}

}  // namespace
}  // namespace sluice::contract
