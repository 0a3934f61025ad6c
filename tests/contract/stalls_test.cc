// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// Who stands still while one stream waits for a memory word.
#include <cstdlib>
#include <vector>

#include "tests/contract/fixture.h"
#include "tests/contract/lent_memory.h"

namespace sluice::contract {
namespace {

constexpr int kStreams = 64;

/// How many of `streams` are not over with their work after a moment.
uint64_t Unfinished(const std::vector<CUstream>& streams) {
  const uint64_t deadline = NowNs() + 4'000'000'000;
  uint64_t waiting = 0;
  do {
    waiting = 0;
    for (CUstream stream : streams) waiting += cuStreamQuery(stream) == CUDA_ERROR_NOT_READY;
  } while (waiting != 0 && NowNs() < deadline);
  return waiting;
}

/// One stream waits for a word; 63 get a kernel each, then the legacy stream does. Tells how many
/// of the others do not finish, whether the legacy stream's kernel runs, and whether a query says
/// that the legacy stream is over: it may speak of more than its own work.
int CountStalls() {
  CUmodule module = nullptr;
  CUfunction nothing = nullptr;
  CUfunction fill = nullptr;
  if (!StartContext() || cuModuleLoadData(&module, KernelImage().c_str()) != CUDA_SUCCESS ||
      cuModuleGetFunction(&nothing, module, "nothing") != CUDA_SUCCESS ||
      cuModuleGetFunction(&fill, module, "fill") != CUDA_SUCCESS) {
    return 1;
  }
  LoadKernels(module);
  SharedWord gate;
  SharedWord mark;
  std::vector<CUstream> streams(kStreams);
  for (CUstream& stream : streams) {
    if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return 1;
  }
  const auto launch = [&](CUstream stream) {
    return cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr) == CUDA_SUCCESS;
  };
  // Whatever is done at the first use.
  for (CUstream stream : streams) launch(stream);
  launch(CU_STREAM_LEGACY);
  cuCtxSynchronize();
  const CUstream waiting = streams.back();
  streams.pop_back();
  if (cuStreamWaitValue64_v2(waiting, gate.device(), 1, CU_STREAM_WAIT_VALUE_GEQ) != CUDA_SUCCESS ||
      !launch(waiting)) {
    return 1;
  }
  for (CUstream stream : streams) {
    if (!launch(stream)) return 1;
  }
  WriteToTest(Unfinished(streams));
  CUdeviceptr target = mark.device();
  uint32_t value = 1;
  uint64_t count = 1;
  void* params[] = {&target, &value, &count};
  if (cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, CU_STREAM_LEGACY, params, nullptr) != 0) return 1;
  const uint64_t query_stalls = Unfinished({CU_STREAM_LEGACY});
  WriteToTest(mark.Load() == 0);
  WriteToTest(query_stalls);
  gate.Store(1);
  WriteToTest(cuCtxSynchronize());
  return 0;
}
const bool kCount = AddRole("count_stalls", CountStalls);

class Stalls : public ::testing::TestWithParam<const char*> {};

TEST_P(Stalls, OfStreamsBesideOneThatWaits) {
  const std::string connections = GetParam();
  if (connections != "unset") {
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", connections.c_str(), 1);
  }
  OtherProcess other("count_stalls");
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const uint64_t stalled = other.Read();
  EXPECT_LT(stalled, static_cast<uint64_t>(kStreams));
  Answer("stalled_streams.connections_" + connections, std::to_string(stalled));
  AnswerIf("legacy_stream_stalls.connections_" + connections, other.Read() != 0);
  AnswerIf("legacy_stream_seems_busy.connections_" + connections, other.Read() != 0);
  EXPECT_EQ(other.Read(), CUDA_SUCCESS) << "the wait is over for all";
  EXPECT_EQ(other.Join(), 0);
}
INSTANTIATE_TEST_SUITE_P(Connections, Stalls, ::testing::Values("unset", "8", "32"),
                         [](const auto& test) { return std::string(test.param); });

/// Waits in a stream until it is killed.
int WaitForever() {
  static SharedWord* gate = nullptr;
  CUstream stream = nullptr;
  if (!StartContext()) return 1;
  gate = new SharedWord;
  if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
      cuStreamWaitValue64_v2(stream, gate->device(), 1, CU_STREAM_WAIT_VALUE_GEQ) != CUDA_SUCCESS) {
    return 1;
  }
  WriteToTest(1);
  ReadFromTest();
  return 0;
}
const bool kWaitForever = AddRole("wait_forever", WaitForever);

class StallsBetweenProcesses : public ContextTest {
 protected:
  double SlowKernelsMs() {
    const uint64_t begin = NowNs();
    for (int i = 0; i < 10; ++i) EXPECT_CU(Launch("slow", {}));
    EXPECT_CU(cuCtxSynchronize());
    return static_cast<double>(NowNs() - begin) / 1e6;
  }
};

TEST_F(StallsBetweenProcesses, AProcessThatOnlyWaitsLetsOthersRun) {
  SlowKernelsMs();
  const double alone = SlowKernelsMs();
  OtherProcess other("wait_forever");
  ASSERT_EQ(other.Read(), 1u);
  const double beside = SlowKernelsMs();
  Measure("ten_kernels_of_20ms_alone_ms", alone);
  Measure("beside_a_process_that_waits_ms", beside);
  // Half of the GPU would be twice the time; nothing of it would never end.
  EXPECT_LT(beside, 10 * alone);
  other.Kill();
}

}  // namespace
}  // namespace sluice::contract
