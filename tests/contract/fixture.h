// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/cuda/driver_api.h"
#include "tests/contract/answers.h"

/// What the contract tests share. They use the driver API alone. Each test program runs on a
/// simulated GPU of its own, made by main() in fixture.cc (DIR of the GPU: environment
/// SLUICE_SIMGPU), or on the machine's driver (answers.h).
namespace sluice::contract {

#define ASSERT_CU(call) ASSERT_EQ((call), CUDA_SUCCESS)
#define EXPECT_CU(call) EXPECT_EQ((call), CUDA_SUCCESS)

/// A test with a current context and the module of kernels.cc.
class ContextTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  CUfunction Kernel(const char* name);
  /// Launches one thread of a kernel. `params` as in cuLaunchKernel.
  CUresult Launch(const char* kernel, std::vector<void*> params, CUstream stream = nullptr);
  CUresult Fill(CUdeviceptr target, uint32_t value, uint64_t count, CUstream stream = nullptr);
  CUdeviceptr Alloc(size_t bytes);
  uint32_t Read32(CUdeviceptr address);
  size_t FreeBytes();

  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
};

/// The machine file of the GPU that the tests run on. A test program that wants another one defines
/// this function itself.
const char* MachineFile();

/// The image of kernels.cc, or the file that SLUICE_CONTRACT_IMAGE names (of kernels.cu).
const std::string& KernelImage();
/// Whether it is that of kernels.cc, which has a kernel that cannot be loaded and sees the bytes of
/// shared memory of its launch.
bool OwnKernels();

/// A real driver loads a kernel at its first launch, and that may wait for all work of the context:
/// for ever, beside a stream that waits for the test. This does it ahead.
void LoadKernels(CUmodule module);

/// Properties of exportable memory of device 0.
CUmemAllocationProp DeviceMemory();
CUmemAccessDesc ReadWrite();
size_t Granularity();

/// A word that host and GPU share.
class SharedWord {
 public:
  SharedWord();
  ~SharedWord();
  volatile uint64_t* host() const { return word_; }
  CUdeviceptr device() const { return reinterpret_cast<CUdeviceptr>(word_); }
  uint64_t Load() const { return __atomic_load_n(word_, __ATOMIC_ACQUIRE); }
  void Store(uint64_t value) { __atomic_store_n(word_, value, __ATOMIC_RELEASE); }

 private:
  uint64_t* word_ = nullptr;
};

/// Starts this test program again as another process: it runs the function that was registered
/// under `role` instead of the tests. Talks over two pipes.
class OtherProcess {
 public:
  explicit OtherProcess(const char* role, int pass_fd = -1);
  ~OtherProcess();
  int pid() const { return pid_; }
  /// One number from the other process; fails the test after ten seconds.
  uint64_t Read();
  void Write(uint64_t value);
  void Kill();
  /// Exit code, after closing the pipe.
  int Join();

 private:
  int pid_ = -1;
  int to_ = -1;
  int from_ = -1;
};

/// In the other process.
uint64_t ReadFromTest();
void WriteToTest(uint64_t value);
inline constexpr int kPassedFd = 10;

/// Registers a role: `const bool kX = AddRole("name", [] { ...; return 0; });`
bool AddRole(const char* role, int (*function)());

/// `const bool kX = NeedGpuMemory("192MiB");`: the size of the simulated GPU, if not 64 MiB.
bool NeedGpuMemory(const char* size);

/// `const bool kX = NeedGpus("2");`: how many simulated GPUs, if not one.
bool NeedGpus(const char* count);

/// The numbers of `simgpu-ctl stats --json`. On a real driver they end the test as skipped.
uint64_t Stat(const std::string& key, int gpu = 0);
/// What is to go wrong on the simulated GPU from now on (`simgpu-ctl inject`). Its exit code.
int Inject(const std::string& rules);

/// What simgpu-ctl counts for this process (or another) and one family of memory.
struct Counted {
  uint64_t requested = 0;
  uint64_t held = 0;
  bool operator==(const Counted&) const = default;
};
Counted CountedBytes(const std::string& family, int pid = 0);
/// On a real driver, which does not say it, nothing is expected and the test goes on.
void ExpectCounted(const std::string& family, const Counted& counted, int pid = 0);

/// Polls until `done`, at most ten seconds.
bool Eventually(bool (*done)(void*), void* argument);
template <typename F>
bool Eventually(F done) {
  return Eventually([](void* f) { return (*static_cast<F*>(f))(); }, &done);
}

}  // namespace sluice::contract
