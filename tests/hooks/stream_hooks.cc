// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/hooks/hook_fixture.h"

// Which memory the GPU is done with follows from what the program synchronises.

namespace sluice::hooks {
namespace {

class StreamHook : public Hook {
 protected:
  CUstream NewStream() {
    CUstream stream = nullptr;
    EXPECT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
  }
  /// Less than calls for a mark was freed on `a`. After `synchronise` another stream has it without
  /// asking the daemon for more.
  void ExpectCollected(CUstream a, const std::function<CUresult()>& synchronise) {
    CUdeviceptr at = 0;
    ASSERT_CU(cuMemAllocAsync(&at, 3 * kMiB, a));
    ASSERT_CU(cuMemFreeAsync(at, a));
    ASSERT_CU(synchronise());
    const uint64_t leases = Says("leases");
    ASSERT_CU(cuMemAllocAsync(&at, 3 * kMiB, NewStream()));
    EXPECT_EQ(Says("leases"), leases);
  }
  /// A block that is freed on a stream with work still queued is nobody's before that work is done,
  /// also when the stream is gone and its handle comes back for another one.
  void DestroyWithWorkQueued(CUresult (*destroy)(CUstream)) {
    const SharedWord word;
    const CUstream old = NewStream();
    CUdeviceptr at = 0;
    ASSERT_CU(cuMemAllocAsync(&at, kMiB, old));
    Block(old, word);
    ASSERT_CU(cuMemFreeAsync(at, old));
    ASSERT_CU(destroy(old));
    CUstream fresh = NewStream();
    for (int i = 0; i < 1000 && fresh != old; ++i) fresh = NewStream();
    ASSERT_EQ(fresh, old);
    CUdeviceptr other = 0;
    ASSERT_CU(cuMemAllocAsync(&other, kMiB, fresh));
    EXPECT_NE(other, at);
    word.host()[0] = 1;
  }
};

TEST_F(StreamHook, cuStreamSynchronize) {
  const CUstream a = NewStream();
  ExpectCollected(a, [a] { return cuStreamSynchronize(a); });
}

TEST_F(StreamHook, cuStreamSynchronize_ptsz) {
  ExpectCollected(CU_STREAM_PER_THREAD, [] { return cuStreamSynchronize_ptsz(nullptr); });
}

TEST_F(StreamHook, cuCtxSynchronize) {
  ExpectCollected(NewStream(), [] { return cuCtxSynchronize(); });
}

TEST_F(StreamHook, cuCtxSynchronize_v2) {
  ExpectCollected(NewStream(), [this] { return cuCtxSynchronize_v2(context_); });
}

TEST_F(StreamHook, cuStreamDestroy) { DestroyWithWorkQueued(cuStreamDestroy); }

TEST_F(StreamHook, cuStreamDestroy_v2) { DestroyWithWorkQueued(cuStreamDestroy_v2); }

TEST_F(StreamHook, cuModuleUnload) {
  Begin();
  ASSERT_CU(Launch("nothing", {}));
  ASSERT_CU(cuModuleUnload(module_));
  ExpectSoon([this] { return Says("functions"); }, 1);
  ASSERT_CU(cuModuleLoadData(&module_, contract::KernelImage().c_str()));
  const CUfunction reused = Kernel("shape");
  const CUdeviceptr target = Alloc(64);
  CUdeviceptr parameter = target;
  void* params[] = {&parameter};
  ASSERT_CU(cuLaunchKernel(reused, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  ExpectSoon([this] { return Says("functions"); }, 2);
}

TEST_F(StreamHook, cuLibraryUnload) {
  Begin();
  const auto launch = [](CUlibrary library, const char* name, void** params) {
    CUkernel kernel = nullptr;
    CUfunction function = nullptr;
    ASSERT_CU(cuLibraryGetKernel(&kernel, library, name));
    ASSERT_CU(cuKernelGetFunction(&function, kernel));
    ASSERT_CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  };
  const auto load = [] {
    CUlibrary library = nullptr;
    EXPECT_CU(cuLibraryLoadData(&library, contract::KernelImage().c_str(), nullptr, nullptr, 0,
                                nullptr, nullptr, 0));
    return library;
  };
  const CUlibrary first = load();
  launch(first, "nothing", nullptr);
  ASSERT_CU(cuLibraryUnload(first));
  ExpectSoon([this] { return Says("functions"); }, 1);
  const CUlibrary second = load();
  CUdeviceptr target = Alloc(64);
  void* params[] = {&target};
  launch(second, "shape", params);
  ExpectSoon([this] { return Says("functions"); }, 2);
  ASSERT_CU(cuLibraryUnload(second));
}

// With it the driver gives back what its pools have to spare.
TEST_F(Hook, cuEventSynchronize) {
  Begin();
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  ASSERT_CU(cuMemPoolCreate(&pool, &props));
  CUdeviceptr at = 0;
  ASSERT_CU(cuMemAllocFromPoolAsync(&at, 2 * kMiB, pool, nullptr));
  ASSERT_CU(cuMemFreeAsync(at, nullptr));
  CUevent event = nullptr;
  ASSERT_CU(cuEventCreate(&event, CU_EVENT_DEFAULT));
  ASSERT_CU(cuEventRecord(event, nullptr));
  EXPECT_EQ(Outside("pool"), 2 * kMiB);
  ASSERT_CU(cuEventSynchronize(event));
  ExpectSoon([this] { return Outside("pool"); }, 0);
}

}  // namespace
}  // namespace sluice::hooks
