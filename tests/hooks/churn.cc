// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
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

std::string FromEnvironment(const char* name) {
  const char* text = getenv(name);
  return text == nullptr ? "" : text;
}
uint64_t FromEnvironment(const char* name, uint64_t standard) {
  const std::string text = FromEnvironment(name);
  return text.empty() ? standard : std::stoull(text);
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
    const uint64_t contexts = (1 + tally.contexts) * kContext;
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

  const OraclePage* oracle_ = nullptr;
  CUmemoryPool ordinary_ = nullptr;
  CUmemoryPool exportable_ = nullptr;
  uint64_t pool_bytes_ = 0;  // what the library has of the device by import
  uint64_t quiet_points_ = 0;
};

TEST_F(Churn, Accounting) {
  constexpr uint64_t kThreads = 3;
  const uint64_t wanted = FromEnvironment("SLUICE_TEST_CALLS", 3000);
  const Exchange exchange(FromEnvironment("SLUICE_TEST_OWN_SOCKET"),
                          FromEnvironment("SLUICE_TEST_PEER_SOCKET"));
  exchange.AwaitPeer();
  const std::string physical = FromEnvironment("SLUICE_PHYSICAL");
  const Worker::Shared shared = {context_,
                                 Kernel("fill"),
                                 {ordinary_, exportable_},
                                 &exchange,
                                 FromEnvironment("SLUICE_TEST_LEASES", 0) != 0,
                                 physical == "lease",
                                 FromEnvironment("SLUICE_TEST_CONTEXTS", 0) != 0};
  std::vector<std::unique_ptr<Worker>> workers;
  for (uint64_t i = 0; i < kThreads; ++i) {
    workers.push_back(
        std::make_unique<Worker>(shared, FromEnvironment("SLUICE_TEST_SEED", 1) * 100 + i));
  }
  const auto sum_of = [&workers](auto figure) {
    auto sum = figure(*workers.front());
    for (size_t i = 1; i < workers.size(); ++i) sum += figure(*workers[i]);
    return sum;
  };
  const auto calls = [](const Worker& worker) { return worker.calls(); };
  while (sum_of(calls) < wanted && !HasFailure()) {
    std::vector<std::thread> threads;
    for (auto& worker : workers) {
      threads.emplace_back([&worker] { worker->Run(kCallsPerRound / kThreads); });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_CU(cuCtxSynchronize());
    ExpectAllAgree(sum_of([](const Worker& worker) { return worker.tally(); }));
    printf("quiet=%llu\n", static_cast<unsigned long long>(quiet_points_));  // NOLINT
    fflush(stdout);
  }
  for (auto& worker : workers) worker->Clear();
  ASSERT_CU(cuCtxSynchronize());
  ASSERT_CU(cuDeviceGraphMemTrim(0));
  ExpectAllAgree({});
  const auto say = [&sum_of](const char* what, uint64_t (Worker::*figure)() const) {
    const uint64_t sum = sum_of([figure](const Worker& worker) { return (worker.*figure)(); });
    printf("%s=%llu\n", what, static_cast<unsigned long long>(sum));  // NOLINT
  };
  say("calls", &Worker::calls);
  say("refused", &Worker::refused);
  say("imports", &Worker::imports);
  say("graphs", &Worker::graphs);
  say("leased", &Worker::leased);
  say("compared", &Worker::compared);
  say("kept", &Worker::kept);
  say("contexts", &Worker::contexts);
  say("moved", &Worker::moved);
  say("ended", &Worker::ended);
}

}  // namespace
}  // namespace sluice::hooks
