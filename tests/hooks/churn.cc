// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/oracle_page.h"
#include "tests/hooks/churn_worker.h"

// Random calls of all families on several threads and streams. At every quiet point what the
// program has, what the daemon thinks it has, and what the device counts are the same, and no limit
// is exceeded. accounting_test runs it as a job, two at a time, which send each other memory.

namespace sluice::hooks {
namespace {

using contract::CountedBytes;

/// Between two quiet points, of all threads together.
constexpr uint64_t kCallsPerRound = 1000;
constexpr uint64_t kThreads = 3;
/// For one part; the longest soak takes minutes.
constexpr auto kPatience = std::chrono::minutes(20);

std::string FromEnvironment(const char* name) {
  const char* text = getenv(name);
  return text == nullptr ? "" : text;
}
uint64_t FromEnvironment(const char* name, uint64_t standard) {
  const std::string text = FromEnvironment(name);
  return text.empty() ? standard : std::stoull(text);
}

/// accounting_test keeps this job's standard input open for as long as it is to go on.
bool InputEnded() {
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, 0) > 0;
}

class Churn : public Hook {
 protected:
  void SetUp() override {
    Hook::SetUp();
    Begin();
    const int fd = open(getenv("SLUICE_ORACLE"), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    oracle_ = static_cast<const OraclePage*>(
        mmap(nullptr, sizeof(OraclePage), PROT_READ, MAP_SHARED, fd, 0));
    close(fd);
    ASSERT_NE(oracle_, MAP_FAILED);
    pool_bytes_ = CountedBytes("ipc").requested;
    ordinary_ = NewPool(CU_MEM_HANDLE_TYPE_NONE);
    exportable_ = NewPool(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  }
  static CUmemoryPool NewPool(CUmemAllocationHandleType handles) {
    CUmemPoolProps props{};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.handleTypes = handles;
    props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemoryPool pool = nullptr;
    EXPECT_CU(cuMemPoolCreate(&pool, &props));
    return pool;
  }
  /// What the device takes for this process's.
  uint64_t HeldByDevice() const {
    uint64_t units = 0;
    for (uint32_t unit = 0; unit < oracle_->unit_count; ++unit) {
      if (oracle_->unit[unit].holder.load() == static_cast<uint32_t>(getpid())) ++units;
    }
    return units * oracle_->unit_bytes;
  }
  uint64_t HeldByLibrary() const {
    CUmemoryPool pool = nullptr;
    cuuint64_t bytes = 0;
    EXPECT_CU(cuDeviceGetDefaultMemPool(&pool, 0));
    EXPECT_CU(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes));
    return bytes;
  }
  uint64_t LedgerLess(uint64_t bytes) {
    EXPECT_CU(Launch("nothing", {}));
    const auto job = Job();
    const uint64_t unfenced = job.at("unfenced_bytes").get<uint64_t>();
    if (unfenced > 0) return ~uint64_t{0};  // on its way; not quiet yet
    return job.at("held_bytes").get<uint64_t>() - job.at("spare_bytes").get<uint64_t>() - bytes;
  }
  /// What the daemon says. It may have been replaced a moment ago, and then a launch is where the
  /// library notices that it is called back.
  uint64_t Asked(const std::string& family) {
    EXPECT_CU(Launch("nothing", {}));
    return Outside(family);
  }
  void ExpectAllAgree(const Tally& tally) {
    const uint64_t contexts = ((context_ != nullptr ? 1 : 0) + tally.contexts) * kContext;
    const auto agree = [this](const char* family, uint64_t expected) {
      SCOPED_TRACE(family);
      ExpectSoon([this, family] { return Asked(family); }, expected);
    };
    // Between the program and the daemon. What is leased as physical memory is the arena's, too.
    ExpectSoon([this] { return Says("live_bytes"); }, tally.live);
    agree("array", tally.array);
    agree("physical", tally.physical);
    agree("managed", tally.managed);
    agree("imported", tally.imported);
    agree("host_pinned", tally.host_pinned);
    agree("host_registered", tally.host_registered);
    agree("context", contexts);
    // Between the daemon and the device, family by family, and in the sum.
    const uint64_t counted[] = {CountedBytes("array").requested, CountedBytes("vmm").requested,
                                CountedBytes("managed").requested, CountedBytes("async").held,
                                CountedBytes("graph").held};
    EXPECT_EQ(counted[0], tally.array);
    EXPECT_EQ(counted[1], tally.physical);
    EXPECT_EQ(counted[2], tally.managed);
    EXPECT_EQ(CountedBytes("ipc").requested - pool_bytes_, tally.imported)
        << "the pool is imported";
    agree("pool", counted[3]);
    agree("graph", counted[4]);
    EXPECT_EQ(CountedBytes("sync").requested, 0u) << "all of it is the arena's";
    uint64_t sum = 0;
    for (const uint64_t bytes : counted) sum += bytes;
    ExpectSoon([this] { return Says("outside_bytes"); }, sum + contexts);
    // What the ledger leases, the device's holder map has, and the library divides. Spare units
    // count as held, but nobody may touch them.
    ExpectSoon([this] { return LedgerLess(HeldByDevice()); }, 0);
    ExpectSoon([this] { return LedgerLess(HeldByLibrary()); }, 0);
    // The limit, by what the daemon counts and by what the device does.
    const auto job = Job();
    const uint64_t limit = job.at("limit_bytes").get<uint64_t>();
    EXPECT_LE(job.at("held_bytes").get<uint64_t>() + job.at("outside_bytes").get<uint64_t>(),
              limit + contexts);
    EXPECT_LE(HeldByDevice() + sum, limit);
    ++quiet_points_;
  }

  Tally Sum() const {
    Tally sum;
    for (const auto& worker : workers_) sum += worker->tally();
    return sum;
  }
  uint64_t Sum(uint64_t (Worker::*figure)() const) const {
    uint64_t sum = 0;
    for (const auto& worker : workers_) sum += ((*worker).*figure)();
    return sum;
  }
  void Say(const char* what, uint64_t figure) {
    printf("%s=%llu\n", what, static_cast<unsigned long long>(figure));  // NOLINT: printf
    fflush(stdout);
  }
  /// What the daemon has told the library: whether anybody waits, or might.
  bool Pressure() { return Job().at("pressure").get<bool>(); }

  /// Iterations that the daemon can recognise.
  void Iterate(int count) {
    constexpr size_t kTemporary = kUnit / 4;
    if (pacing_ == nullptr) {
      ASSERT_CU(cuStreamCreate(&pacing_, CU_STREAM_NON_BLOCKING));
    }
    for (int i = 0; i < count; ++i) {
      for (uint32_t step = 0; step < 4; ++step) {
        CUdeviceptr at = 0;
        // The limit may have no room for it.
        if (cuMemAllocAsync(&at, kTemporary, pacing_) != CUDA_SUCCESS) continue;
        EXPECT_CU(Fill(at, step, 16, pacing_));
        EXPECT_CU(cuMemFreeAsync(at, pacing_));
      }
      EXPECT_CU(Launch("nothing", {}, pacing_));
    }
  }
  /// What a new job would wait for does not come: it is let in when this one is silent for long.
  void EndIterations() {
    for (int i = 0; i < 3; ++i) ASSERT_CU(Launch("nothing", {}, pacing_));
  }
  /// Until the daemon knows what the job holds at the end of an iteration. From then on there is
  /// pressure only beside another job.
  void ComeToTrough() {
    constexpr int kEnough = 500;
    const CUdeviceptr kept = Alloc(kUnit);
    for (int i = 0; i < kEnough && Says("base_bytes") == 0; ++i) Iterate(64);
    ASSERT_GT(Says("base_bytes"), 0u);
    ASSERT_CU(cuMemFree_v2(kept));
  }

  /// A thousand random calls, and then nobody does anything.
  void Round() {
    const bool before = Pressure();
    const uint64_t calls = Sum(&Worker::calls);
    std::vector<std::thread> threads;
    for (auto& worker : workers_) {
      threads.emplace_back([&worker] { worker->Run(kCallsPerRound / kThreads); });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_CU(cuCtxSynchronize());
    if (const bool after = Pressure(); after == before) {
      (after ? pressed_ : calm_) += Sum(&Worker::calls) - calls;
    }
    for (auto& worker : workers_) worker->CheckBlocks();
    ExpectAllAgree(Sum());
    Say("quiet", quiet_points_);
  }

  /// By its last reference, which may be a green context's, or whoever has references.
  void EndPrimary() {
    CUgreenCtx last = nullptr;
    switch (moves_ % 3) {
      case 0:
        ASSERT_CU(cuDevicePrimaryCtxReset_v2(0));
        break;
      case 1:
        ASSERT_CU(cuDevicePrimaryCtxRelease_v2(0));
        break;
      default:
        last = NewGreen();
        ASSERT_CU(cuDevicePrimaryCtxRelease_v2(0));
        ASSERT_CU(cuGreenCtxDestroy(last));
    }
  }
  /// The context that all share ends, perhaps with the session in it, and one of a worker's own
  /// survives it: the session goes on there. Then there is another one, and the session moves again
  /// when the worker destroys its own.
  void EndSharedContext() {
    for (auto& worker : workers_) {
      if (worker->own_context() != nullptr) worker->CloseContext();
    }
    Worker& survivor = *workers_[moves_ % workers_.size()];
    survivor.OpenContext();
    if (survivor.own_context() == nullptr) return;  // no room for it
    for (auto& worker : workers_) worker->LeaveShared();
    ASSERT_CU(cuCtxSetCurrent(survivor.own_context()));
    EndPrimary();
    context_ = nullptr;
    pacing_ = nullptr;
    survivor.TakeSession();
    ++moves_;
    ASSERT_CU(cuModuleLoadData(&module_, contract::KernelImage().c_str()));
    for (auto& worker : workers_) worker->CheckBlocks();
    ExpectAllAgree(Sum());
    ASSERT_CU(cuModuleUnload(module_));
    ContextTest::SetUp();
    for (auto& worker : workers_) worker->EnterShared(context_, Kernel("fill"));
  }

  /// Rounds until there were so many calls in all, and `done`.
  void RunUntil(uint64_t calls, const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    for (bool last = false; !last && !HasFailure();) {
      Round();
      if (contexts_ && quiet_points_ % 3 == 0) EndSharedContext();
      if (iterates_ && quiet_points_ % 3 == 1) Iterate(64);
      last = Sum(&Worker::calls) >= calls && done();
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "what it waits for does not come";
    }
  }

  std::vector<std::unique_ptr<Worker>> workers_;
  CUstream pacing_ = nullptr;  // of the iterations; null: there is none, and the default one serves
  bool contexts_ = false;
  bool iterates_ = false;  // now and then; not beside others, who would wait for the next one
  const OraclePage* oracle_ = nullptr;
  CUmemoryPool ordinary_ = nullptr;
  CUmemoryPool exportable_ = nullptr;
  uint64_t pool_bytes_ = 0;  // what the library has of the device by import
  uint64_t quiet_points_ = 0;
  uint64_t moves_ = 0;    // of the session, from the shared context
  uint64_t calm_ = 0;     // calls in rounds without pressure
  uint64_t pressed_ = 0;  // and in rounds with it
};

TEST_F(Churn, Accounting) {
  const uint64_t wanted = FromEnvironment("SLUICE_TEST_CALLS", 3000);
  // In which this job is alone or has company, one after the other; 0: it comes to no trough.
  const uint64_t parts = FromEnvironment("SLUICE_TEST_PARTS", 0);
  const Exchange exchange(FromEnvironment("SLUICE_TEST_OWN_SOCKET"),
                          FromEnvironment("SLUICE_TEST_PEER_SOCKET"));
  if (parts <= 1) exchange.AwaitPeer();
  contexts_ = FromEnvironment("SLUICE_TEST_CONTEXTS", 0) != 0;
  const std::string physical = FromEnvironment("SLUICE_PHYSICAL");
  const Worker::Shared shared = {context_,
                                 Kernel("fill"),
                                 {ordinary_, exportable_},
                                 &exchange,
                                 FromEnvironment("SLUICE_TEST_LEASES", 0) != 0,
                                 physical == "lease",
                                 contexts_};
  for (uint64_t i = 0; i < kThreads; ++i) {
    workers_.push_back(
        std::make_unique<Worker>(shared, FromEnvironment("SLUICE_TEST_SEED", 1) * 100 + i));
  }
  if (parts > 0) ComeToTrough();
  if (parts <= 1) RunUntil(wanted, InputEnded);
  for (uint64_t part = 0; parts > 1 && part < parts; ++part) {
    const bool company = part % 2 == 1;
    Say(company ? "company" : "alone", part);  // accounting_test sees to it
    if (company) {
      EndIterations();
      exchange.AwaitPeer();
    }
    iterates_ = !company;
    const uint64_t& seen = company ? pressed_ : calm_;
    RunUntil(wanted * (part + 1) / parts, [&seen, before = seen] { return seen > before; });
  }
  for (auto& worker : workers_) worker->Clear();
  ASSERT_CU(cuCtxSynchronize());
  ASSERT_CU(cuDeviceGraphMemTrim(0));
  ExpectAllAgree({});
  Say("calls", Sum(&Worker::calls));
  Say("refused", Sum(&Worker::refused));
  Say("imports", Sum(&Worker::imports));
  Say("graphs", Sum(&Worker::graphs));
  Say("leased", Sum(&Worker::leased));
  Say("compared", Sum(&Worker::compared));
  Say("kept", Sum(&Worker::kept));
  Say("contexts", Sum(&Worker::contexts));
  Say("moved", Sum(&Worker::moved));
  Say("ended", Sum(&Worker::ended));
  Say("greens", Sum(&Worker::greens));
  Say("moves", moves_);
  Say("carried", Sum(&Worker::carried));
  Say("calm", calm_);
  Say("pressed", pressed_);
}

}  // namespace
}  // namespace sluice::hooks
