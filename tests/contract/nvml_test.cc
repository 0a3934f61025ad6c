// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// NVML beyond the list of processes (sharing_test.cc): errors as events, and what is empty here.
#include "tests/contract/nvml.h"

#include <cstdlib>
#include <filesystem>
#include <future>
#include <iterator>
#include <vector>

#include "tests/contract/fixture.h"

namespace sluice::contract {
namespace {

class NvmlEvents : public ContextTest {
 protected:
  void SetUp() override {
    ContextTest::SetUp();
    ASSERT_EQ(NVML(nvmlInit_v2)(), NVML_SUCCESS);
    ASSERT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2)(0, &device_), NVML_SUCCESS);
    ASSERT_EQ(NVML(nvmlEventSetCreate)(&set_), NVML_SUCCESS);
  }
  void TearDown() override {
    if (set_ == nullptr) return;  // skipped before there was anything
    EXPECT_EQ(NVML(nvmlEventSetFree)(set_), NVML_SUCCESS);
    EXPECT_EQ(NVML(nvmlShutdown)(), NVML_SUCCESS);
    ContextTest::TearDown();
  }
  static int Report(const char* code) {
    OnlySimulated("it injects an error with simgpu-ctl");
    const std::string command =
        std::string(SLUICE_SIMGPU_CTL) + " xid " + getenv("SLUICE_SIMGPU") + " " + code;
    return system((command + " 2>/dev/null").c_str());
  }
  nvmlReturn_t Watch() {
    return NVML(nvmlDeviceRegisterEvents)(device_, nvmlEventTypeXidCriticalError, set_);
  }
  nvmlDevice_t device_ = nullptr;
  nvmlEventSet_t set_ = nullptr;
};

TEST_F(NvmlEvents, AnInjectedErrorWakesTheWaiter) {
  ASSERT_EQ(Report("13"), 0);  // before anybody watches: nobody hears of it
  unsigned long long types = 0;
  ASSERT_EQ(NVML(nvmlDeviceGetSupportedEventTypes)(device_, &types), NVML_SUCCESS);
  EXPECT_EQ(types, unsigned{nvmlEventTypeXidCriticalError});
  ASSERT_EQ(Watch(), NVML_SUCCESS);
  nvmlEventData_v2_t event{};
  EXPECT_EQ(NVML(nvmlEventSetWait_v2)(set_, &event, 0), NVML_ERROR_TIMEOUT);
  auto waiter = std::async(std::launch::async,
                           [&] { return NVML(nvmlEventSetWait_v2)(set_, &event, 10'000); });
  ASSERT_EQ(Report("79"), 0);
  ASSERT_EQ(waiter.get(), NVML_SUCCESS);
  EXPECT_EQ(event.device, device_);
  EXPECT_EQ(event.eventType, unsigned{nvmlEventTypeXidCriticalError});
  EXPECT_EQ(event.eventData, 79u);
  // In their order, and each once.
  ASSERT_EQ(Report("31"), 0);
  ASSERT_EQ(Report("48"), 0);
  nvmlEventData_v1_t old{};
  ASSERT_EQ(NVML(nvmlEventSetWait)(set_, &old, 0), NVML_SUCCESS);
  EXPECT_EQ(old.eventData, 31u);
  ASSERT_EQ(NVML(nvmlEventSetWait)(set_, &old, 0), NVML_SUCCESS);
  EXPECT_EQ(old.eventData, 48u);
  EXPECT_EQ(NVML(nvmlEventSetWait)(set_, &old, 0), NVML_ERROR_TIMEOUT);
}

TEST_F(NvmlEvents, AGpuIsInOnePieceUntilItsMigModeIsOn) {
  unsigned now = 7;
  unsigned later = 7;
  ASSERT_EQ(NVML(nvmlDeviceGetMigMode)(device_, &now, &later), NVML_SUCCESS);
  EXPECT_EQ(now, unsigned{NVML_DEVICE_MIG_DISABLE});
  EXPECT_EQ(later, unsigned{NVML_DEVICE_MIG_DISABLE});
  EXPECT_EQ(NVML(nvmlDeviceGetMigMode)(device_, nullptr, &later), NVML_ERROR_INVALID_ARGUMENT);
  OnlySimulated("it sets the mode with simgpu-ctl");
  const std::string set = std::string(SLUICE_SIMGPU_CTL) + " mig " + getenv("SLUICE_SIMGPU") + " ";
  EXPECT_NE(system((set + "half 2>/dev/null").c_str()), 0);
  ASSERT_EQ(system((set + "on").c_str()), 0);
  ASSERT_EQ(NVML(nvmlDeviceGetMigMode)(device_, &now, &later), NVML_SUCCESS);
  EXPECT_EQ(now, unsigned{NVML_DEVICE_MIG_ENABLE});
  ASSERT_EQ(system((set + "off").c_str()), 0);
}

TEST_F(NvmlEvents, BadInputIsRefused) {
  EXPECT_NE(Report("seventy"), 0);
  EXPECT_EQ(NVML(nvmlDeviceRegisterEvents)(device_, 1, set_), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(NVML(nvmlDeviceRegisterEvents)(device_, 8, nullptr), NVML_ERROR_INVALID_ARGUMENT);
  nvmlEventData_v2_t event{};
  EXPECT_EQ(NVML(nvmlEventSetWait_v2)(nullptr, &event, 0), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(NVML(nvmlEventSetWait_v2)(set_, nullptr, 0), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(NVML(nvmlEventSetFree)(nullptr), NVML_ERROR_INVALID_ARGUMENT);
}

const bool kDrawer = AddRole("drawer", [] {
  CUcontext context = nullptr;
  if (setenv("SLUICE_SIMGPU_DRAWS", "1", 1) != 0 || cuInit(0) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) {
    return 1;
  }
  WriteToTest(0);
  ReadFromTest();
  return 0;
});

TEST_F(NvmlEvents, WhoDrawsIsInBothLists) {
  OnlySimulated("nothing else draws there");
  OtherProcess drawer("drawer");
  drawer.Read();
  std::vector<nvmlProcessInfo_v2_t> infos(8);
  unsigned count = 8;
  ASSERT_EQ(NVML(nvmlDeviceGetGraphicsRunningProcesses_v3)(device_, &count, infos.data()),
            NVML_SUCCESS);
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(infos[0].pid, static_cast<unsigned>(drawer.pid()));
  EXPECT_GT(infos[0].usedGpuMemory, 0u);
  count = 8;
  ASSERT_EQ(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device_, &count, infos.data()),
            NVML_SUCCESS);
  EXPECT_EQ(count, 2u) << "this process and that one";
}

TEST_F(NvmlEvents, UtilizationIsToldByProcess) {
  ASSERT_CU(Launch("nothing", {}));
  ASSERT_CU(cuCtxSynchronize());
  const auto ask = NVML(nvmlDeviceGetProcessUtilization);
  unsigned count = 0;
  // A real one keeps samples of intervals: nothing may have come of one kernel yet.
  const nvmlReturn_t sized = ask(device_, nullptr, &count, 0);
  if (RealDriver() && sized == NVML_ERROR_NOT_FOUND) GTEST_SKIP() << "no sample yet";
  ASSERT_EQ(sized, NVML_ERROR_INSUFFICIENT_SIZE);
  ASSERT_GE(count, 1u);
  std::vector<nvmlProcessUtilizationSample_t> samples(count);
  ASSERT_EQ(ask(device_, samples.data(), &count, 0), NVML_SUCCESS);
  if (RealDriver()) return;
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(samples[0].pid, static_cast<unsigned>(getpid()));
  EXPECT_LE(samples[0].smUtil, 100u);
  EXPECT_EQ(ask(device_, samples.data(), &count, samples[0].timeStamp + 1'000'000'000'000),
            NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(ask(device_, samples.data(), nullptr, 0), NVML_ERROR_INVALID_ARGUMENT);
}

constexpr char kGroup[] = "/sys/fs/cgroup/kubepods/a/";
constexpr unsigned long long kNoLimit = ~0ull;

/// In the group, as a container is: says whether each block that it is told to make is there.
const bool kContained = AddRole("contained", [] {
  CUcontext context = nullptr;
  if (setenv("SLUICE_SIMGPU_CGROUP", "/kubepods/a", 1) != 0 || cuInit(0) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return 1;
  }
  for (uint64_t bytes = ReadFromTest(); bytes != 0; bytes = ReadFromTest()) {
    CUdeviceptr block = 0;
    WriteToTest(static_cast<uint64_t>(cuMemAlloc_v2(&block, bytes)));
  }
  return 0;
});

class NvmlLimits : public NvmlEvents {
 protected:
  void SetUp() override {
    OnlySimulated("a real one needs a driver from 615 and the rights of root");
    NvmlEvents::SetUp();
  }
  nvmlReturn_t Set(unsigned long long soft, unsigned long long hard, const char* group = kGroup) {
    nvmlSetMemoryLimits_v1_t limits = {group, soft, hard};
    return NVML(nvmlDeviceSetMemoryLimits_v1)(device_, &limits);
  }
  nvmlGetMemoryLimits_v1_t Get(const char* group = kGroup) {
    nvmlGetMemoryLimits_v1_t limits = {group, 1, 1, 1};
    EXPECT_EQ(NVML(nvmlDeviceGetMemoryLimits_v1)(device_, &limits), NVML_SUCCESS);
    return limits;
  }
};

TEST_F(NvmlLimits, HoldForAllProgramsOfTheGroupTogether) {
  constexpr uint64_t kMiB = 1 << 20;
  EXPECT_EQ(Get().hardLimit, kNoLimit);
  ASSERT_EQ(Set(0, 8 * kMiB), NVML_SUCCESS);
  EXPECT_EQ(Get().hardLimit, 8 * kMiB);
  const auto asked = [](OtherProcess& process, uint64_t bytes) {
    process.Write(bytes);
    return static_cast<CUresult>(process.Read());
  };
  {
    OtherProcess one("contained");
    OtherProcess two("contained");
    EXPECT_EQ(asked(one, 4 * kMiB), CUDA_SUCCESS);
    EXPECT_EQ(Get().currentUsed % kMiB, 0u);
    EXPECT_GE(Get().currentUsed, 5 * kMiB) << "a context, too";
    EXPECT_EQ(asked(two, 4 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
    // Nobody else is in it.
    const CUdeviceptr ours = Alloc(16 * kMiB);
    ASSERT_NE(ours, 0u);
    EXPECT_EQ(cuMemFree_v2(ours), CUDA_SUCCESS);
    ASSERT_EQ(Set(0, 16 * kMiB), NVML_SUCCESS);
    EXPECT_EQ(asked(two, 4 * kMiB), CUDA_SUCCESS);
    EXPECT_EQ(asked(one, 8 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
    ASSERT_EQ(Set(0, kNoLimit), NVML_SUCCESS);
    EXPECT_EQ(asked(one, 8 * kMiB), CUDA_SUCCESS);
    one.Write(0);
    two.Write(0);
    EXPECT_EQ(one.Join(), 0);
    EXPECT_EQ(two.Join(), 0);
  }
  EXPECT_EQ(Get().hardLimit, kNoLimit);
  // It ends with the last process that maps it, which is a moment later.
  EXPECT_TRUE(Eventually([this] { return Get().currentUsed == 0; }));
}

TEST_F(NvmlLimits, BadOnesAreRefused) {
  EXPECT_EQ(Set(2, 1), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(Set(0, 1, nullptr), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(NVML(nvmlDeviceSetMemoryLimits_v1)(device_, nullptr), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(NVML(nvmlDeviceGetMemoryLimits_v1)(device_, nullptr), NVML_ERROR_INVALID_ARGUMENT);
  for (int i = 0; i < 64; ++i) {
    ASSERT_EQ(Set(0, 1, ("/full/" + std::to_string(i)).c_str()), NVML_SUCCESS) << i;
  }
  EXPECT_EQ(Set(0, 1), NVML_ERROR_UNKNOWN) << "there is no room for more groups";
  EXPECT_EQ(Set(0, kNoLimit), NVML_SUCCESS) << "it has none anyway";
  for (int i = 0; i < 64; ++i) {
    ASSERT_EQ(Set(0, kNoLimit, ("/full/" + std::to_string(i)).c_str()), NVML_SUCCESS);
  }
  EXPECT_EQ(Set(1, 2), NVML_SUCCESS);
  EXPECT_EQ(Get().softLimit, 1u);
  EXPECT_EQ(Set(0, kNoLimit), NVML_SUCCESS);
}

TEST_F(NvmlLimits, TheVersionSaysWhetherThereAreSome) {
  char version[80] = {};
  ASSERT_EQ(NVML(nvmlSystemGetDriverVersion)(version, sizeof version), NVML_SUCCESS);
  EXPECT_STREQ(version, "615.21.04");
  EXPECT_EQ(NVML(nvmlSystemGetDriverVersion)(version, 3), NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(NVML(nvmlSystemGetDriverVersion)(nullptr, 80), NVML_ERROR_INVALID_ARGUMENT);
}

size_t OpenDescriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

bool LoadAskAndDrop() {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  const auto init = reinterpret_cast<decltype(&nvmlInit_v2)>(dlsym(library, "nvmlInit_v2"));
  const auto shutdown = reinterpret_cast<decltype(&nvmlShutdown)>(dlsym(library, "nvmlShutdown"));
  return init() == NVML_SUCCESS && shutdown() == NVML_SUCCESS && dlclose(library) == 0;
}

// A process that has the library from nowhere else.
const bool kWatcher = AddRole("watcher", [] {
  bool asked = LoadAskAndDrop();
  const size_t before = OpenDescriptors();
  for (int i = 0; i < 5; ++i) asked = LoadAskAndDrop() && asked;
  WriteToTest(asked ? 1 : 0);
  WriteToTest(before);
  WriteToTest(OpenDescriptors());
  return 0;
});

TEST(NvmlLibrary, LoadedAgainAndAgainHoldsNothingMore) {
  OnlySimulated("a real one keeps its devices open as it likes");
  OtherProcess watcher("watcher");
  EXPECT_EQ(watcher.Read(), 1u);
  const uint64_t before = watcher.Read();
  EXPECT_EQ(watcher.Read(), before);
  EXPECT_EQ(watcher.Join(), 0);
}

TEST_F(NvmlEvents, NothingDrawsAndNothingIsMappedOverTheBus) {
  OnlySimulated("it knows what else the machine does");
  nvmlProcessInfo_v2_t infos[4];
  for (const auto list : {NVML(nvmlDeviceGetGraphicsRunningProcesses_v3),
                          NVML(nvmlDeviceGetMPSComputeRunningProcesses_v3),
                          NVML(nvmlDeviceGetGraphicsRunningProcesses_v2)}) {
    unsigned count = 4;
    EXPECT_EQ(list(device_, &count, infos), NVML_SUCCESS);
    EXPECT_EQ(count, 0u);
  }
  nvmlBAR1Memory_t window{};
  ASSERT_EQ(NVML(nvmlDeviceGetBAR1MemoryInfo)(device_, &window), NVML_SUCCESS);
  EXPECT_EQ(window.bar1Total, uint64_t{64} << 20);
  EXPECT_EQ(window.bar1Used, 0u);
}

}  // namespace
}  // namespace sluice::contract
