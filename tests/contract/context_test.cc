// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "tests/contract/fixture.h"
#include "tests/contract/lent_memory.h"

namespace sluice::contract {
namespace {

constexpr size_t kMiB = 1u << 20;

TEST(Context, CostsMemoryAndGivesItBack) {
  OnlySimulated("it knows what a context costs; context_bytes_test.cc measures it");
  ASSERT_CU(cuInit(0));
  CUcontext first = nullptr;
  ASSERT_CU(cuDevicePrimaryCtxRetain(&first, 0));
  ASSERT_CU(cuCtxSetCurrent(first));
  size_t before = 0;
  size_t after = 0;
  size_t total = 0;
  ASSERT_CU(cuMemGetInfo_v2(&before, &total));
  CUcontext second = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&second, 0, 0));
  ASSERT_CU(cuMemGetInfo_v2(&after, &total));
  EXPECT_EQ(after, before - kMiB);  // context_bytes in the machine file
  EXPECT_EQ(total, 64 * kMiB);
  ASSERT_CU(cuCtxDestroy_v2(second));
  ASSERT_CU(cuCtxSetCurrent(first));
  ASSERT_CU(cuMemGetInfo_v2(&after, &total));
  EXPECT_EQ(after, before);
  EXPECT_EQ(cuCtxDestroy_v2(second), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  ASSERT_CU(cuDevicePrimaryCtxRelease_v2(0));
  EXPECT_EQ(cuMemGetInfo_v2(&after, &total), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

class ContextLife : public ContextTest {};

TEST_F(ContextLife, StackOfCurrentContexts) {
  CUcontext current = nullptr;
  CUcontext other = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&other, 0, 0));
  ASSERT_CU(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, other);
  ASSERT_CU(cuCtxPopCurrent_v2(&current));
  EXPECT_EQ(current, other);
  ASSERT_CU(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, context_);
  ASSERT_CU(cuCtxPushCurrent_v2(other));
  CUstream stream = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, 0));
  ASSERT_CU(cuCtxPopCurrent_v2(nullptr));
  // A stream is waited for from anywhere.
  EXPECT_CU(cuStreamSynchronize(stream));
  EXPECT_CU(cuStreamQuery(stream));
  ASSERT_CU(cuCtxDestroy_v2(other));
}

// What a program does that has several contexts and forgets to make the right one current.
TEST_F(ContextLife, AStreamOfAContextThatIsNotCurrent) {
  CUcontext other = nullptr;
  CUstream stream = nullptr;
  CUevent own = nullptr;
  CUevent event = nullptr;
  ASSERT_CU(cuEventCreate(&own, CU_EVENT_DISABLE_TIMING));
  ASSERT_CU(cuCtxCreate_v2(&other, 0, 0));
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CUdeviceptr memory = 0;
  ASSERT_CU(cuMemAlloc_v2(&memory, 4096));
  ASSERT_CU(cuCtxSetCurrent(context_));
  unsigned long long id = 0;  // NOLINT(google-runtime-int): the driver's type
  CUcontext tells = nullptr;
  EXPECT_CU(cuStreamGetCtx(stream, &tells));
  EXPECT_EQ(tells, other);
  Answer("elsewhere.cuStreamGetId", NameOf(cuStreamGetId(stream, &id)));
  Answer("elsewhere.cuMemsetD8Async", NameOf(cuMemsetD8Async(memory, 1, 4096, stream)));
  Answer("elsewhere.cuLaunchKernel", NameOf(Launch("nothing", {}, stream)));
  Answer("elsewhere.cuEventRecord", NameOf(cuEventRecord(event, stream)));
  Answer("elsewhere.cuEventRecord_of_an_event_of_the_current_context",
         NameOf(cuEventRecord(own, stream)));
  uint32_t word32 = 0;
  Answer("elsewhere.cuMemcpyHtoDAsync", NameOf(cuMemcpyHtoDAsync_v2(memory, &word32, 4, stream)));
  Answer("elsewhere.cuStreamWaitEvent", NameOf(cuStreamWaitEvent(stream, own, 0)));
  CUdeviceptr pool = 0;
  const CUresult allocated = cuMemAllocAsync(&pool, 4096, stream);
  Answer("elsewhere.cuMemAllocAsync", NameOf(allocated));
  if (allocated == CUDA_SUCCESS) {
    EXPECT_CU(cuMemFreeAsync(pool, stream));
  }
  SharedWord word;
  Answer("elsewhere.cuStreamWriteValue64",
         NameOf(cuStreamWriteValue64_v2(stream, word.device(), 1, 0)));
  EXPECT_CU(cuStreamSynchronize(stream));
  EXPECT_CU(cuStreamDestroy_v2(stream));
  EXPECT_CU(cuCtxDestroy_v2(other));
}

TEST_F(ContextLife, HandlesThatAreNoneAreRefused) {
  OnlySimulated("a real driver reads what a handle points to");
  int none = 0;
  EXPECT_EQ(cuCtxPushCurrent_v2(reinterpret_cast<CUcontext>(&none)), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxSynchronize_v2(reinterpret_cast<CUcontext>(&none)), CUDA_ERROR_INVALID_CONTEXT);
  CUcontext other = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&other, 0, 0));
  ASSERT_CU(cuCtxDestroy_v2(other));
  EXPECT_EQ(cuCtxSynchronize_v2(other), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

/// A program without children must not find any after it made a context.
int LookForChildren() {
  static std::atomic<int> signals{0};
  signal(SIGCHLD, [](int) { signals.fetch_add(1); });
  int held[2];
  // No close-on-exec: what starts the executor must not pass this on.
  if (pipe(held) != 0) return 1;
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  const bool alone = waitpid(-1, nullptr, __WALL | WNOHANG) == -1 && errno == ECHILD;
  WriteToTest(alone && signals.load() == 0 ? 1 : 0);
  close(held[1]);
  pollfd end{held[0], POLLIN, 0};
  WriteToTest(poll(&end, 1, 5000) == 1 && (end.revents & POLLHUP) != 0 ? 1 : 0);
  return 0;
}
const bool kChildren = AddRole("children", LookForChildren);

TEST(Executor, IsNobodysChildAndHoldsNobodysFiles) {
  OnlySimulated("there is no executor");
  OtherProcess other("children");
  EXPECT_EQ(other.Read(), 1u);
  EXPECT_EQ(other.Read(), 1u);
  EXPECT_EQ(other.Join(), 0);
}

/// The executors of this process.
std::vector<pid_t> Executors() {
  std::vector<pid_t> found;
  DIR* folder = opendir("/proc");
  while (const dirent* entry = readdir(folder)) {
    const pid_t pid = atoi(entry->d_name);
    if (pid <= 0) continue;
    std::ifstream file(std::string("/proc/") + entry->d_name + "/cmdline");
    std::string word[3];
    for (std::string& w : word) std::getline(file, w, '\0');
    if (word[0] == "simgpu-executor" && word[2] == std::to_string(getpid())) found.push_back(pid);
  }
  closedir(folder);
  return found;
}

TEST_F(ContextLife, AnExecutorThatDiesIsALaunchFailureNotAHang) {
  OnlySimulated("there is no executor");
  const std::vector<pid_t> before = Executors();
  SharedWord word;  // of the context that lives on
  CUcontext other = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&other, 0, 0));
  CUstream stream = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(cuStreamWaitValue64_v2(stream, word.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  for (const pid_t pid : Executors()) {
    if (std::find(before.begin(), before.end(), pid) == before.end()) kill(pid, SIGKILL);
  }
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_CU(cuCtxDestroy_v2(other));
  ASSERT_CU(cuCtxSetCurrent(context_));
  const CUdeviceptr memory = Alloc(64);
  ASSERT_CU(Fill(memory, 8, 1));
  EXPECT_EQ(Read32(memory), 8u);
}

TEST_F(ContextLife, TheNewerFormsTakeAContextOrNone) {
  CUcontext other = nullptr;
  CUctxCreateParams plain{};
  ASSERT_CU(cuCtxCreate_v4(&other, &plain, 0, 0));
  CUctxCigParam graphics{};
  CUctxCreateParams shared{};
  shared.cigParams = &graphics;
  CUcontext none = nullptr;
  EXPECT_EQ(cuCtxCreate_v4(&none, &shared, 0, 0), CUDA_ERROR_INVALID_VALUE);
  CUexecAffinityParam some{};
  EXPECT_NE(cuCtxCreate_v3(&none, &some, 1, 0, 0), CUDA_SUCCESS) << "for no SM at all";
  ASSERT_CU(cuCtxSetCurrent(context_));
  CUdevice device = -1;
  EXPECT_CU(cuCtxGetDevice_v2(&device, other));
  EXPECT_EQ(device, 0);
  EXPECT_CU(cuCtxSynchronize_v2(other));
  EXPECT_CU(cuCtxSynchronize_v2(nullptr));
  ASSERT_CU(cuCtxDestroy_v2(other));
}

TEST_F(ContextLife, ThreadsShareAContext) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  const CUfunction fill = Kernel("fill");
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([this, fill, t, &wrong] {
      cuCtxSetCurrent(context_);
      for (uint32_t i = 0; i < 50; ++i) {
        CUdeviceptr memory = 0;
        uint32_t value = t << 16 | i;
        uint64_t count = 256;
        uint32_t back[256] = {};
        void* params[] = {&memory, &value, &count};
        const bool done =
            cuMemAllocAsync_ptsz(&memory, 1024, nullptr) == CUDA_SUCCESS &&
            cuLaunchKernel_ptsz(fill, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr) ==
                CUDA_SUCCESS &&
            cuMemcpyDtoHAsync_v2_ptsz(back, memory, sizeof back, nullptr) == CUDA_SUCCESS &&
            cuMemFreeAsync_ptsz(memory, nullptr) == CUDA_SUCCESS;
        if (!done || back[0] != value || back[255] != value) wrong.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace sluice::contract
