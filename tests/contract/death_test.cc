// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// What is left of a process that is killed: its kernels, and memory that a forked child still
// refers to.
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/contract/fixture.h"
#include "tests/contract/lent_memory.h"

namespace sluice::contract {
namespace {

constexpr size_t kMiB = 1u << 20;

/// Counts up in lent memory, in a kernel that does not end by itself.
int CountInLentMemory() {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  if (!StartContext() || cuModuleLoadData(&module, KernelImage().c_str()) != CUDA_SUCCESS ||
      cuModuleGetFunction(&function, module, "count_up") != CUDA_SUCCESS) {
    return 1;
  }
  const size_t bytes = ReadFromTest();
  SharedWord running;
  Mapping mapping(ImportMemory(kPassedFd), bytes);
  if (mapping.result() != CUDA_SUCCESS) return 1;
  CUdeviceptr counter = mapping.address();
  CUdeviceptr stop = counter + 8;
  uint64_t limit = ~uint64_t{0};
  void* params[] = {&counter, &stop, &limit};
  CUdeviceptr word = running.device();
  CUstream stream = nullptr;
  if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
      cuStreamWriteValue64_v2(stream, word, 1, 0) != CUDA_SUCCESS ||
      cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr) != CUDA_SUCCESS ||
      !Eventually([&] { return running.Load() == 1; })) {
    return 1;
  }
  WriteToTest(1);
  ReadFromTest();
  return 0;
}
const bool kCount = AddRole("count", CountInLentMemory);

class Death : public ContextTest {
 protected:
  uint64_t Read64(CUdeviceptr address) {
    uint64_t value = 0;
    EXPECT_CU(cuMemcpyDtoH_v2(&value, address, sizeof value));
    return value;
  }
};

TEST_F(Death, AKernelOfAKilledProcessStopsWriting) {
  const size_t bytes = Granularity();
  const CUmemGenericAllocationHandle handle = CreateMemory(bytes);
  const int fd = ExportMemory(handle);
  {
    Mapping mapping(handle, bytes);
    ASSERT_CU(mapping.result());
    ASSERT_CU(cuMemsetD32_v2(mapping.address(), 0, 4));
    ASSERT_CU(cuCtxSynchronize());
    OtherProcess writer("count", fd);
    writer.Write(bytes);
    ASSERT_EQ(writer.Read(), 1u);
    const int process = static_cast<int>(syscall(SYS_pidfd_open, writer.pid(), 0));
    ASSERT_GE(process, 0);
    const uint64_t killed = NowNs();
    writer.Kill();
    pollfd gone{process, POLLIN, 0};
    ASSERT_EQ(poll(&gone, 1, 10'000), 1);
    const uint64_t seen = NowNs();
    close(process);
    // The counter must come to rest: unchanged for a fifth of a second.
    uint64_t value = Read64(mapping.address());
    const uint64_t at_first = value;
    uint64_t changed = seen;
    while (NowNs() - changed < 200'000'000 && NowNs() - seen < 8'000'000'000) {
      const uint64_t now = Read64(mapping.address());
      if (now != value) changed = NowNs();
      value = now;
    }
    EXPECT_LT(NowNs() - seen, 8'000'000'000u) << "it still writes";
    // No answer to compare: it is a race that the GPU may win or lose.
    Measure("writes_after_the_end_was_seen", value != at_first ? 1 : 0);
    Measure("killed_to_end_seen_ms", static_cast<double>(seen - killed) / 1e6);
    Measure("end_seen_to_last_write_ms", static_cast<double>(changed - seen) / 1e6);
    Measure("counted", static_cast<double>(value));
  }
  close(fd);
  ASSERT_CU(cuMemRelease(handle));
}

enum class Kind : uint64_t { kPlain, kPhysical, kMapped, kImported, kImportedAndMapped };

/// Holds memory of a kind, forks a child that does nothing, and waits to be killed.
int HoldAndFork() {
  if (!StartContext()) return 1;
  const auto kind = static_cast<Kind>(ReadFromTest());
  const size_t bytes = ReadFromTest();
  CUdeviceptr plain = 0;
  CUmemGenericAllocationHandle handle = 0;
  if (kind == Kind::kPlain) {
    if (cuMemAlloc_v2(&plain, bytes) != CUDA_SUCCESS) return 1;
  } else if (kind == Kind::kPhysical || kind == Kind::kMapped) {
    handle = CreateMemory(bytes);
  } else {
    handle = ImportMemory(kPassedFd);
    close(kPassedFd);
  }
  if (kind == Kind::kMapped || kind == Kind::kImportedAndMapped) {
    static Mapping mapping(handle, bytes);
    if (mapping.result() != CUDA_SUCCESS) return 1;
    if (cuMemRelease(handle) != CUDA_SUCCESS) return 1;  // the mapping alone
  }
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  WriteToTest(static_cast<uint64_t>(child));
  ReadFromTest();
  return 0;
}
const bool kHoldAndFork = AddRole("hold_and_fork", HoldAndFork);

class ForkedChild : public Death,
                    public ::testing::WithParamInterface<std::pair<Kind, const char*>> {};

TEST_P(ForkedChild, AndTheMemoryOfItsKilledParent) {
  const auto [kind, name] = GetParam();
  // Free memory is the whole GPU's: the block is large against what neighbours take and give back
  // meanwhile, and half of it decides. Waiting for the exact number lasts until they are gone.
  const size_t bytes = (RealDriver() ? 2048 : 16) * kMiB;
  const size_t slack = RealDriver() ? bytes / 2 : 0;
  const size_t before = FreeBytes();
  int fd = -1;
  if (kind == Kind::kImported || kind == Kind::kImportedAndMapped) {
    const CUmemGenericAllocationHandle handle = CreateMemory(bytes);
    fd = ExportMemory(handle);
    ASSERT_CU(cuMemRelease(handle));
  }
  OtherProcess parent("hold_and_fork", fd);
  close(fd);
  parent.Write(static_cast<uint64_t>(kind));
  parent.Write(bytes);
  const auto child = static_cast<pid_t>(parent.Read());
  ASSERT_GT(child, 0);
  parent.Kill();
  parent.Join();
  // What does not come back within two seconds stays. On a real driver the child holds all of the
  // parent's descriptors, its context included, so that these two seconds pass.
  const uint64_t deadline = NowNs() + 2'000'000'000;
  while (NowNs() < deadline && FreeBytes() + slack < before) poll(nullptr, 0, 5);
  AnswerIf(std::string("kept_by_a_forked_child.") + name, FreeBytes() + bytes / 2 <= before);
  const uint64_t killed = NowNs();
  kill(child, SIGKILL);
  EXPECT_TRUE(Eventually([&] { return FreeBytes() + slack >= before; }))
      << "the last holder is gone";
  Measure("last_holder_killed_to_free_ms", static_cast<double>(NowNs() - killed) / 1e6);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, ForkedChild,
    ::testing::Values(std::pair(Kind::kPlain, "cuMemAlloc"),
                      std::pair(Kind::kPhysical, "cuMemCreate"),
                      std::pair(Kind::kMapped, "cuMemMap"), std::pair(Kind::kImported, "imported"),
                      std::pair(Kind::kImportedAndMapped, "imported_and_mapped")),
    [](const auto& test) { return std::string(test.param.second); });

}  // namespace
}  // namespace sluice::contract
