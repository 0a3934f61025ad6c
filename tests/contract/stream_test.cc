// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <poll.h>

#include <atomic>
#include <set>
#include <thread>

#include "tests/contract/answers.h"
#include "tests/contract/fixture.h"

namespace sluice::contract {
namespace {

class Stream : public ContextTest {
 protected:
  CUstream NewStream(unsigned flags) {
    CUstream stream = nullptr;
    EXPECT_CU(cuStreamCreate(&stream, flags));
    return stream;
  }
  CUresult Append(CUdeviceptr log, uint32_t value, CUstream stream) {
    return Launch("append", {&log, &value}, stream);
  }
  /// Whether all work of a stream is over within ten seconds. Unlike a synchronisation it comes
  /// back where a real driver does not let streams run side by side.
  static bool IsOver(CUstream stream) {
    return Eventually([&] { return cuStreamQuery(stream) == CUDA_SUCCESS; });
  }
  CUresult Hold(const SharedWord& word, CUstream stream) {
    CUdeviceptr flag = word.device();
    return Launch("wait_flag", {&flag}, stream);
  }
  CUdeviceptr NewLog() {
    const CUdeviceptr log = Alloc(65536);
    EXPECT_CU(cuMemsetD8_v2(log, 0, 65536));
    EXPECT_CU(cuCtxSynchronize());
    return log;
  }
  std::vector<uint32_t> ReadLog(CUdeviceptr log) {
    std::vector<uint32_t> values(Read32(log));
    EXPECT_CU(cuMemcpyDtoH_v2(values.data(), log + 4, values.size() * 4));
    return values;
  }
};

TEST_F(Stream, KeepsTheOrderOfIssue) {
  const CUdeviceptr log = NewLog();
  const CUstream stream = NewStream(CU_STREAM_NON_BLOCKING);
  for (uint32_t i = 0; i < 1000; ++i) ASSERT_CU(Append(log, i, stream));
  ASSERT_CU(cuStreamSynchronize(stream));
  const std::vector<uint32_t> values = ReadLog(log);
  ASSERT_EQ(values.size(), 1000u);
  for (uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(values[i], i);
  EXPECT_CU(cuStreamDestroy_v2(stream));
}

TEST_F(Stream, AWaitStopsOnlyItsOwnStream) {
  SharedWord word;
  const CUdeviceptr log = NewLog();
  const CUstream waiting = NewStream(CU_STREAM_NON_BLOCKING);
  const CUstream free_stream = NewStream(CU_STREAM_NON_BLOCKING);
  ASSERT_CU(cuStreamWaitValue64_v2(waiting, word.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(Append(log, 1, waiting));
  ASSERT_CU(Append(log, 2, free_stream));
  EXPECT_TRUE(IsOver(free_stream));
  EXPECT_EQ(cuStreamQuery(waiting), CUDA_ERROR_NOT_READY);
  word.Store(1);
  ASSERT_CU(cuStreamSynchronize(waiting));
  EXPECT_EQ(ReadLog(log), (std::vector<uint32_t>{2, 1}));
}

TEST_F(Stream, TheLegacyStreamIsABarrierForBlockingStreamsOnly) {
  SharedWord word;
  const CUdeviceptr log = NewLog();
  const CUstream blocking = NewStream(CU_STREAM_DEFAULT);
  const CUstream other = NewStream(CU_STREAM_DEFAULT);
  const CUstream apart = NewStream(CU_STREAM_NON_BLOCKING);
  ASSERT_CU(cuStreamWaitValue64_v2(blocking, word.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(Append(log, 1, blocking));
  ASSERT_CU(Append(log, 2, nullptr));  // behind 1
  ASSERT_CU(Append(log, 3, other));    // behind 2
  ASSERT_CU(Append(log, 4, apart));    // on its own
  EXPECT_TRUE(IsOver(apart));
  EXPECT_EQ(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
  word.Store(1);
  ASSERT_CU(cuCtxSynchronize());
  EXPECT_EQ(ReadLog(log), (std::vector<uint32_t>{4, 1, 2, 3}));
}

TEST_F(Stream, PerThreadVariantsUseAStreamOfTheThread) {
  unsigned long long legacy = 0;
  unsigned long long mine = 0;
  unsigned long long theirs = 0;
  ASSERT_CU(cuStreamGetId(nullptr, &legacy));
  ASSERT_CU(cuStreamGetId_ptsz(nullptr, &mine));
  std::thread([&] {
    cuCtxSetCurrent(context_);
    cuStreamGetId_ptsz(nullptr, &theirs);
  }).join();
  EXPECT_NE(legacy, mine);
  EXPECT_NE(mine, theirs);
  EXPECT_NE(theirs, 0u);
  unsigned long long named = 0;
  ASSERT_CU(cuStreamGetId(CU_STREAM_PER_THREAD, &named));
  EXPECT_EQ(named, mine);
}

TEST_F(Stream, IdsAreUniqueAmongContexts) {
  std::set<unsigned long long> ids;  // NOLINT(google-runtime-int): the driver's type
  const auto add = [&ids](CUstream stream) {
    unsigned long long id = 0;  // NOLINT(google-runtime-int)
    EXPECT_CU(cuStreamGetId(stream, &id));
    return ids.insert(id).second;
  };
  CUcontext contexts[2] = {context_, nullptr};
  ASSERT_CU(cuCtxCreate_v2(&contexts[1], 0, 0));
  std::vector<CUstream> streams;
  for (int i = 0; i < 8; ++i) {
    ASSERT_CU(cuCtxSetCurrent(contexts[i % 2]));
    streams.push_back(nullptr);
    ASSERT_CU(cuStreamCreate(&streams.back(), CU_STREAM_NON_BLOCKING));
    EXPECT_TRUE(add(streams.back())) << i;
  }
  bool apart = true;
  for (const CUcontext context : contexts) {
    ASSERT_CU(cuCtxSetCurrent(context));
    for (const CUstream stream : {CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
      apart = add(stream) && apart;
    }
  }
  AnswerIf("default_streams_of_two_contexts_have_two_ids", apart);
  // Nor does one come again.
  ASSERT_CU(cuStreamDestroy_v2(streams[0]));
  ASSERT_CU(cuCtxDestroy_v2(contexts[1]));
  ASSERT_CU(cuCtxSetCurrent(context_));
  ASSERT_CU(cuStreamCreate(&streams[0], CU_STREAM_NON_BLOCKING));
  EXPECT_TRUE(add(streams[0]));
  for (size_t own = 0; own < streams.size(); own += 2) {
    ASSERT_CU(cuStreamDestroy_v2(streams[own]));
  }
}

TEST_F(Stream, LaunchesDoNotWaitForTheGpu) {
  SharedWord word;
  const CUstream stream = NewStream(CU_STREAM_NON_BLOCKING);
  ASSERT_CU(Hold(word, stream));
  const CUdeviceptr memory = Alloc(4096);
  ASSERT_CU(Fill(memory, 5, 1, stream));
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  word.Store(1);
  ASSERT_CU(cuStreamSynchronize(stream));
  EXPECT_CU(cuStreamQuery(stream));
}

// The machine file of these tests allows 64 outstanding operations.
TEST_F(Stream, AFullLaunchQueueBlocksUnderTheDriverLock) {
  OnlySimulated("a real launch queue is longer: see the next test");
  SharedWord word;
  const CUstream stream = NewStream(CU_STREAM_NON_BLOCKING);
  const CUstream other = NewStream(CU_STREAM_NON_BLOCKING);
  ASSERT_CU(Hold(word, stream));
  for (int i = 1; i < 64; ++i) ASSERT_CU(Launch("nothing", {}, stream));
  std::atomic<int> issued{0};
  std::thread launcher([&] {
    cuCtxSetCurrent(context_);
    const CUfunction f = Kernel("nothing");
    issued.store(1);
    EXPECT_CU(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
    issued.store(2);
  });
  ASSERT_TRUE(Eventually([&] { return issued.load() >= 1; }));
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);  // queries pass
  std::atomic<bool> second{false};
  std::thread another([&] {
    cuCtxSetCurrent(context_);
    EXPECT_CU(cuStreamSynchronize(other));  // nothing queued, but the driver lock is taken
    second.store(true);
  });
  // Nothing can be over before the word is set, so neither call may return. The pause only gives a
  // wrong driver time to show itself; a right one passes however long it is.
  poll(nullptr, 0, 50);
  EXPECT_EQ(issued.load(), 1);
  EXPECT_FALSE(second.load());
  word.Store(1);
  launcher.join();
  another.join();
  EXPECT_EQ(issued.load(), 2);
  ASSERT_CU(cuCtxSynchronize());
}

TEST_F(Stream, HowManyLaunchesFitBehindOneThatWaits) {
  SharedWord word;
  const CUstream stream = NewStream(CU_STREAM_NON_BLOCKING);
  const CUstream other = NewStream(CU_STREAM_NON_BLOCKING);
  const CUfunction nothing = Kernel("nothing");
  ASSERT_CU(Hold(word, stream));
  constexpr int kMost = 20'000;
  std::atomic<int> issued{0};
  std::thread launcher([&] {
    cuCtxSetCurrent(context_);
    while (issued.load() < kMost) {
      EXPECT_CU(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
      issued.fetch_add(1);
    }
  });
  // Over when it stands still for half a second.
  int before = -1;
  while (issued.load() != before) {
    before = issued.load();
    poll(nullptr, 0, 500);
  }
  const bool blocked = before < kMost;
  std::atomic<bool> passed{false};
  std::atomic<bool> launched{false};
  std::thread another([&] {
    cuCtxSetCurrent(context_);
    EXPECT_CU(cuStreamSynchronize(other));  // nothing is queued there
    passed.store(true);
    EXPECT_CU(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, other, nullptr, nullptr));
    launched.store(true);
  });
  poll(nullptr, 0, 500);
  const bool held = !passed.load();
  const bool held_launch = !launched.load();
  word.Store(1);
  launcher.join();
  another.join();
  Measure("launches_behind_one_that_waits", before);
  AnswerIf("a_launch_blocks_when_the_queue_is_full", blocked);
  AnswerIf("a_blocked_launch_holds_up_other_threads", blocked && held);
  AnswerIf("a_blocked_launch_holds_up_launches_of_others", blocked && held_launch);
  ASSERT_CU(cuCtxSynchronize());
}

TEST_F(Stream, IsNoneOnceItIsDestroyed) {
  OnlySimulated("a real driver reads what a stale handle points to");
  const CUstream stream = NewStream(CU_STREAM_NON_BLOCKING);
  ASSERT_CU(cuStreamDestroy_v2(stream));
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Stream, ADestroyedStreamFinishesItsWork) {
  SharedWord word;
  const CUdeviceptr log = NewLog();
  CUstream stream = NewStream(CU_STREAM_NON_BLOCKING);
  ASSERT_CU(cuStreamWaitValue64_v2(stream, word.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(Append(log, 1, stream));
  // On threads of their own: a real driver may let them wait for what is queued.
  std::atomic<bool> destroyed{false};
  std::atomic<bool> over{false};
  const auto within_a_second = [](const std::atomic<bool>& done) {
    for (int i = 0; i < 1000 && !done.load(); ++i) poll(nullptr, 0, 1);
    return done.load();
  };
  std::thread destroyer([&] {
    cuCtxSetCurrent(context_);
    EXPECT_CU(cuStreamDestroy_v2(stream));
    destroyed.store(true);
  });
  AnswerIf("destroying_waits_for_the_work_of_the_stream", !within_a_second(destroyed));
  std::thread follower([&] {
    cuCtxSetCurrent(context_);
    const CUstream next = NewStream(CU_STREAM_NON_BLOCKING);
    EXPECT_CU(Append(log, 2, next));
    EXPECT_CU(cuStreamSynchronize(next));
    over.store(true);
  });
  AnswerIf("a_new_stream_stands_behind_a_destroyed_one", !within_a_second(over));
  word.Store(1);
  destroyer.join();
  follower.join();
  ASSERT_CU(cuCtxSynchronize());
  EXPECT_EQ(ReadLog(log).size(), 2u);
}

TEST_F(Stream, HostFunctionsRunInOrder) {
  const CUdeviceptr log = NewLog();
  const CUstream stream = NewStream(CU_STREAM_NON_BLOCKING);
  std::atomic<int> calls{0};
  const CUhostFn count = [](void* p) { static_cast<std::atomic<int>*>(p)->fetch_add(1); };
  SharedWord word;
  ASSERT_CU(cuStreamWaitValue64_v2(stream, word.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(cuLaunchHostFunc(stream, count, &calls));
  ASSERT_CU(Append(log, 1, stream));
  ASSERT_CU(cuLaunchHostFunc(stream, count, &calls));
  EXPECT_EQ(calls.load(), 0);
  word.Store(1);
  ASSERT_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(calls.load(), 2);
  EXPECT_EQ(ReadLog(log), std::vector<uint32_t>{1});
}

TEST_F(Stream, HostFunctionsOfTwoStreamsRunWhenTheirTurnComes) {
  SharedWord word;
  const CUstream first = NewStream(CU_STREAM_NON_BLOCKING);
  const CUstream second = NewStream(CU_STREAM_NON_BLOCKING);
  std::atomic<int> calls{0};
  const CUhostFn count = [](void* p) { static_cast<std::atomic<int>*>(p)->fetch_add(1); };
  ASSERT_CU(cuStreamWaitValue64_v2(first, word.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  ASSERT_CU(cuLaunchHostFunc(first, count, &calls));
  ASSERT_CU(cuLaunchHostFunc(second, count, &calls));  // issued later, runs first
  ASSERT_CU(cuStreamSynchronize(second));
  EXPECT_EQ(calls.load(), 1);
  word.Store(1);
  ASSERT_CU(cuStreamSynchronize(first));
  EXPECT_EQ(calls.load(), 2);
}

TEST_F(Stream, AHostFunctionMustNotCallTheDriver) {
  struct Seen {
    CUcontext context;
    CUresult set = CUDA_SUCCESS;
    CUresult allocate = CUDA_SUCCESS;
  } seen{context_};
  ASSERT_CU(cuLaunchHostFunc(
      nullptr,
      [](void* p) {
        auto* s = static_cast<Seen*>(p);
        CUdeviceptr memory = 0;
        s->set = cuCtxSetCurrent(s->context);
        s->allocate = cuMemAlloc_v2(&memory, 4096);
      },
      &seen));
  ASSERT_CU(cuCtxSynchronize());
  EXPECT_EQ(seen.set, CUDA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(seen.allocate, CUDA_ERROR_NOT_PERMITTED);
}

/// Whether a copy from pageable memory comes back while its stream waits. It is made on a thread of
/// its own: a real driver may let a long one wait until the stream has come that far.
class PageableCopy : public Stream, public ::testing::WithParamInterface<size_t> {};

TEST_P(PageableCopy, TakesTheDataBeforeItComesBack) {
  SharedWord word;
  const size_t bytes = GetParam();
  const CUstream stream = NewStream(CU_STREAM_NON_BLOCKING);
  const CUdeviceptr memory = Alloc(bytes);
  std::vector<unsigned char> data(bytes, 0x11);
  ASSERT_CU(cuStreamWaitValue64_v2(stream, word.device(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  std::atomic<bool> back{false};
  std::thread copier([&] {
    cuCtxSetCurrent(context_);
    EXPECT_CU(cuMemcpyHtoDAsync_v2(memory, data.data(), bytes, stream));
    std::fill(data.begin(), data.end(), 0x22);  // it is the program's again
    back.store(true);
  });
  for (int i = 0; i < 1000 && !back.load(); ++i) poll(nullptr, 0, 1);
  AnswerIf("a_copy_waits_for_its_stream." + std::to_string(bytes >> 10) + "KiB", !back.load());
  word.Store(1);
  copier.join();
  std::vector<unsigned char> copied(bytes);
  ASSERT_CU(cuMemcpyDtoHAsync_v2(copied.data(), memory, bytes, stream));
  ASSERT_CU(cuStreamSynchronize(stream));
  EXPECT_TRUE(copied == std::vector<unsigned char>(bytes, 0x11));
}
INSTANTIATE_TEST_SUITE_P(Sizes, PageableCopy,
                         ::testing::Values(size_t{16} << 10, size_t{1} << 20, size_t{9} << 20),
                         [](const auto& test) { return std::to_string(test.param >> 10) + "KiB"; });

}  // namespace
}  // namespace sluice::contract
