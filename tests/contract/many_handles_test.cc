// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// As many handles as a pool of 80 GiB in pieces of 32 MiB has, all mapped at once.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/contract/fixture.h"
#include "tests/contract/lent_memory.h"

namespace sluice::contract {
namespace {

constexpr size_t kHandles = 2560;
constexpr size_t kMiB = 1u << 20;
const bool kMemory = NeedGpuMemory("192MiB");

class ManyHandles : public ContextTest {
 protected:
  void SetUp() override {
    ContextTest::SetUp();
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    // Some for everything else.
    files_ = static_cast<size_t>(files.rlim_cur) - 64;
  }
  size_t files_ = 0;
  /// Microseconds for each of `count` calls.
  template <typename F>
  void Time(const std::string& what, size_t count, F function) {
    const uint64_t begin = NowNs();
    for (size_t i = 0; i < count; ++i) function(i);
    Measure(what + "_us", static_cast<double>(NowNs() - begin) / 1e3 / static_cast<double>(count));
  }
};

TEST_F(ManyHandles, AreImportedMappedAndOpenedAtOnce) {
  const size_t piece = RealDriver() ? 32 * kMiB : Granularity();
  // A smaller GPU maps what fits; how many is in the results.
  const size_t count = std::min({kHandles, FreeBytes() / 10 * 9 / piece, files_});
  if (!RealDriver()) {
    ASSERT_EQ(count, kHandles);
  }
  Measure("handles", static_cast<double>(count));
  std::vector<CUmemGenericAllocationHandle> made(count);
  std::vector<CUmemGenericAllocationHandle> imported(count);
  std::vector<int> files(count);
  CUdeviceptr range = 0;
  ASSERT_CU(cuMemAddressReserve(&range, count * piece, 0, 0, 0));
  Time("create", count, [&](size_t i) { made[i] = CreateMemory(piece); });
  Time("export", count, [&](size_t i) { files[i] = ExportMemory(made[i]); });
  Time("import", count, [&](size_t i) { imported[i] = ImportMemory(files[i]); });
  ASSERT_EQ(std::count(imported.begin(), imported.end(), 0u), 0);
  for (const int fd : files) close(fd);
  for (const auto handle : made) ASSERT_CU(cuMemRelease(handle));
  Time("map", count,
       [&](size_t i) { ASSERT_CU(cuMemMap(range + i * piece, piece, 0, imported[i], 0)); });
  const CUmemAccessDesc access = ReadWrite();
  Time("set_access_of_all", 1,
       [&](size_t) { ASSERT_CU(cuMemSetAccess(range, count * piece, &access, 1)); });
  // One write across all of it, and the word at the end of each piece.
  ASSERT_CU(cuMemsetD32_v2(range, 0x11223344, count * piece / 4));
  for (size_t i = 0; i < count; i += count / 8) {
    EXPECT_EQ(Read32(range + (i + 1) * piece - 4), 0x11223344u);
  }
  Time("unmap", count, [&](size_t i) { ASSERT_CU(cuMemUnmap(range + i * piece, piece)); });
  Time("release", count, [&](size_t i) { ASSERT_CU(cuMemRelease(imported[i])); });
  ASSERT_CU(cuMemAddressFree(range, count * piece));
}

TEST_F(ManyHandles, AreMappedWhileAKernelRuns) {
  SharedWord gate;
  CUstream stream = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const size_t piece = Granularity();
  const CUmemGenericAllocationHandle handle = CreateMemory(piece);
  CUdeviceptr flag = gate.device();
  ASSERT_CU(Launch("wait_flag", {&flag}, stream));
  std::atomic<bool> mapped{false};
  std::atomic<bool> unmapped{false};
  std::thread other([&] {
    EXPECT_CU(cuCtxSetCurrent(context_));
    Mapping mapping(handle, piece);
    EXPECT_CU(mapping.result());
    mapped = true;
    mapping.Unmap();
    unmapped = true;
  });
  const uint64_t begin = NowNs();
  while (!unmapped && NowNs() - begin < 5'000'000'000) std::this_thread::yield();
  AnswerIf("mapping_waits_for_a_running_kernel", !mapped);
  AnswerIf("unmapping_waits_for_a_running_kernel", !unmapped);
  gate.Store(1);
  other.join();
  EXPECT_CU(cuStreamSynchronize(stream));
  EXPECT_CU(cuMemRelease(handle));
}

}  // namespace
}  // namespace sluice::contract
