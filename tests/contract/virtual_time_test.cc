// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// Virtual time (machine_virtual): programs whose times were computed by hand, and a longer one
// whose times are the same in every run. Each runs in a process of its own: one at a time may take
// part.
#include "tests/contract/virtual_time.h"

#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <thread>

namespace sluice::contract {

const char* MachineFile() { return SLUICE_MACHINE_VIRTUAL; }

namespace {

constexpr uint64_t kLaunch = 1000;
constexpr uint64_t kAsk = 500;
constexpr uint64_t kSlow = 20'000'000;
constexpr uint64_t kShort = 100'000;
constexpr uint64_t kCopy = 1'048'576;

/// The times that a program of this file notes, in a process of its own.
Times TimesOf(const char* role) {
  OtherProcess program(role);
  Times times = Receive(&program);
  EXPECT_EQ(program.Join(), 0) << role;
  return times;
}

class VirtualTime : public ::testing::Test {
 protected:
  void SetUp() override { OnlySimulated("real GPUs follow real time"); }
};

int Streams() {
  TimedProgram p;
  const uint64_t start = p.Clock();
  const CUevent begin = p.Record(p.a);
  p.Slow(p.a);
  const CUevent slow = p.Record(p.a);
  p.Short(p.b);
  const CUevent first = p.Record(p.b);
  p.Must(cuMemcpyHtoDAsync_v2(p.device, p.host, TimedProgram::kBytes, p.a), "copy");
  const CUevent copied = p.Record(p.a);
  p.Must(cuStreamWaitEvent(p.b, copied, 0), "wait");
  p.Short(p.b);
  const CUevent second = p.Record(p.b);
  const uint64_t issued = p.Clock();
  p.Must(cuEventSynchronize(first), "synchronise");
  const uint64_t synchronised = p.Clock();
  p.Must(cuCtxSynchronize(), "synchronise");
  const uint64_t over = p.Clock();
  return Send({issued - start, p.Between(begin, slow), p.Between(slow, first),
               p.Between(first, copied), p.Between(copied, second), synchronised - start,
               over - start});
}
const bool kStreams = AddRole("streams", Streams);

TEST_F(VirtualTime, StreamsEventsAndCopiesTakeTheTimesComputedByHand) {
  // One operation at a time, in the order of issue: slow, the first short one, copy, the second.
  const uint64_t slow_end = 2 * kLaunch + kSlow;
  const Times expected = {
      10 * kLaunch,
      20'000'999,  // 20001000, as near as a float of milliseconds comes
      kShort,       kCopy, kShort, slow_end + kShort, slow_end + kShort + kCopy + kShort};
  EXPECT_EQ(TimesOf("streams"), expected);
}

int Declared() {
  TimedProgram p;
  Times times;
  uint32_t unused = 0;
  for (uint64_t ns : {uint64_t{12'345}, uint64_t{0}, uint64_t{7'000'000}}) {
    const CUevent begin = p.Record(p.a);
    p.Launch("lasts", {&unused, &ns}, p.a);
    const CUevent end = p.Record(p.a);
    p.Must(cuStreamSynchronize(p.a), "synchronise");
    times.push_back(p.Between(begin, end));
  }
  return Send(times);
}
const bool kDeclared = AddRole("declared", Declared);

TEST_F(VirtualTime, ALaunchLastsAsLongAsItsArgumentSays) {
  // From the first record to the launch, and then the kernel; the second record is issued 2
  // launches after the first, and no sooner than that.
  EXPECT_EQ(TimesOf("declared"), (Times{kLaunch + 12'345, 2 * kLaunch, kLaunch + 7'000'000}));
}

int Polling() {
  TimedProgram p;
  const uint64_t start = p.Clock();
  p.Slow(p.a);
  const CUevent end = p.Record(p.a);
  uint64_t polls = 1;
  while (cuEventQuery(end) == CUDA_ERROR_NOT_READY) ++polls;
  const uint64_t seen = p.Clock();
  p.Must(cuStreamQuery(p.a), "query");
  p.Must(cuStreamSynchronize(p.a), "synchronise");
  const uint64_t asked = p.Clock();
  p.Work(5'000'000);
  p.Short(p.b);
  p.Must(cuStreamSynchronize(p.b), "synchronise");
  return Send({polls, seen - start, asked - seen, p.Clock() - asked});
}
const bool kPolling = AddRole("polling", Polling);

TEST_F(VirtualTime, QueriesCostTheirTimeSoThatPollingEnds) {
  // Issued at 1000, over at 20001000; the event was recorded at 2000.
  const uint64_t polls = (kLaunch + kSlow - 2 * kLaunch) / kAsk;
  EXPECT_EQ(TimesOf("polling"),
            (Times{polls, kLaunch + kSlow, 2 * kAsk, 5'000'000 + kLaunch + kShort}));
}

int FullQueue() {
  TimedProgram p;
  const uint64_t start = p.Clock();
  for (int i = 0; i < 64; ++i) p.Short(p.a);
  const uint64_t full = p.Clock();
  p.Short(p.a);
  const uint64_t one_more = p.Clock();
  uint32_t word = 0;
  p.Must(cuMemcpyDtoH_v2(&word, p.device, sizeof word), "copy");
  p.Must(cuCtxSynchronize(), "synchronise");
  return Send({full - start, one_more - start, p.Clock() - start, word});
}
const bool kFullQueue = AddRole("full queue", FullQueue);

TEST_F(VirtualTime, AFullLaunchQueueMovesTheClockToTheNextEnd) {
  const Times times = TimesOf("full queue");
  ASSERT_EQ(times.size(), 4u);
  EXPECT_EQ(times[0], 64 * kLaunch);
  EXPECT_EQ(times[1], kLaunch + kShort);  // the first of them is over
  EXPECT_EQ(times[3], 7u);
}

/// Everything at once; the numbers are compared with those of other runs only.
int Everything() {
  TimedProgram p;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  p.Must(cuStreamBeginCapture_v2(p.a, CU_STREAM_CAPTURE_MODE_GLOBAL), "capture");
  p.Short(p.a);
  p.Must(cuMemcpyHtoDAsync_v2(p.device, p.host, TimedProgram::kBytes, p.a), "copy");
  p.Short(p.a);
  p.Must(cuStreamEndCapture(p.a, &graph), "capture");
  p.Must(cuGraphInstantiateWithFlags(&exec, graph, 0), "instantiate");
  Times times;
  for (int round = 0; round < 20; ++round) {
    const CUevent begin = p.Record(p.a);
    p.Must(cuGraphLaunch(exec, p.a), "graph");
    for (int i = 0; i < 200'000; ++i) asm volatile("");  // takes real time, and no other
    p.Short(p.b);
    const CUevent middle = p.Record(p.b);
    p.Must(cuStreamWaitEvent(p.a, middle, 0), "wait");
    CUdeviceptr memory = 0;
    p.Must(cuMemAllocAsync(&memory, 4096, p.a), "allocate");
    p.Must(cuMemsetD8Async(memory, 1, 4096, p.a), "set");
    p.Must(cuMemFreeAsync(memory, p.a), "free");
    p.Must(cuLaunchHostFunc(
               p.a, [](void* word) { ++*static_cast<uint32_t*>(word); }, p.host),
           "host function");
    const CUevent end = p.Record(p.a);
    for (int i = 0; cuEventQuery(end) == CUDA_ERROR_NOT_READY; ++i) p.Work(10'000);
    times.insert(times.end(), {p.Clock(), p.Between(begin, middle), p.Between(begin, end)});
    uint32_t word = 0;
    p.Must(cuMemcpyDtoH_v2(&word, p.device, sizeof word), "copy");
    times.push_back(p.Clock());
  }
  return Send(times);
}
const bool kEverything = AddRole("everything", Everything);

/// The counters of the GPU after the process, from before it.
struct Counters {
  uint64_t clock = Stat("device_clock_ns");
  uint64_t busy = Stat("busy_ns");
  uint64_t stalls = Stat("stalls");
};

TEST_F(VirtualTime, ALongProgramHasTheSameTimesInEveryRunAlsoUnderLoad) {
  const Times first = TimesOf("everything");
  const Counters before;
  const Times second = TimesOf("everything");
  const Counters between;
  Times third;
  {
    const BusyMachine busy;
    third = TimesOf("everything");
  }
  const Counters after;
  // Clocks go on where the last process left them; the rest are differences.
  ASSERT_EQ(first.size(), 80u);
  ASSERT_EQ(second.size(), first.size());
  ASSERT_EQ(third.size(), first.size());
  for (size_t i = 0; i < first.size(); ++i) {
    const size_t base = i - i % 4;
    if (i % 4 == 0 || i % 4 == 3) {
      EXPECT_EQ(first[i] - first[0], second[i] - second[0]) << i;
      EXPECT_EQ(first[i] - first[0], third[i] - third[0]) << i;
    } else {
      EXPECT_EQ(first[i], second[i]) << i << " of round " << base / 4;
      EXPECT_EQ(first[i], third[i]) << i << " of round " << base / 4;
    }
  }
  EXPECT_EQ(between.clock - before.clock, after.clock - between.clock);
  EXPECT_EQ(between.busy - before.busy, after.busy - between.busy);
  EXPECT_EQ(after.stalls, 0u);
}

/// The same on a GPU of its own that differs from machine_virtual by some lines.
Times TimesWith(const std::string& lines, const char* role) {
  char dir[] = "/tmp/sluice-virtual-time-XXXXXX";
  EXPECT_NE(mkdtemp(dir), nullptr);
  const std::string machine = std::string(dir) + "/lines";
  std::ofstream(machine) << std::ifstream(SLUICE_MACHINE_VIRTUAL).rdbuf() << lines;
  const std::string ctl = SLUICE_SIMGPU_CTL;
  EXPECT_EQ(system((ctl + " up " + dir + " --memory 64MiB --machine " + machine).c_str()), 0);
  const std::string own = getenv("SLUICE_SIMGPU");
  setenv("SLUICE_SIMGPU", dir, 1);
  Times times = TimesOf(role);
  setenv("SLUICE_SIMGPU", own.c_str(), 1);
  unlink(machine.c_str());
  EXPECT_EQ(system((ctl + " down " + dir).c_str()), 0);
  return times;
}

/// What the test above compares does differ where real time leaks in.
TEST_F(VirtualTime, TheSameProgramInRealTimeHasOtherTimes) {
  const Times in_virtual_time = TimesOf("everything");
  const Times in_real_time = TimesWith("time = real\n", "everything");
  ASSERT_EQ(in_real_time.size(), in_virtual_time.size());
  size_t equal = 0;
  for (size_t i = 1; i < in_real_time.size(); ++i) {
    if (in_real_time[i] - in_real_time[i - 1] == in_virtual_time[i] - in_virtual_time[i - 1]) {
      ++equal;
    }
  }
  EXPECT_LT(equal, in_real_time.size() / 2);
}

int SideBySide() {
  TimedProgram p;
  const uint64_t start = p.Clock();
  p.Slow(p.a);
  p.Slow(p.b);
  CUstream c = nullptr;
  p.Must(cuStreamCreate(&c, CU_STREAM_NON_BLOCKING), "stream");
  p.Must(cuMemcpyHtoDAsync_v2(p.device, p.host, TimedProgram::kBytes, c), "copy");
  Times times;
  for (const CUstream stream : {c, p.a, p.b}) {
    p.Must(cuStreamSynchronize(stream), "synchronise");
    times.push_back(p.Clock() - start);
  }
  return Send(times);
}
const bool kSideBySide = AddRole("side by side", SideBySide);

TEST_F(VirtualTime, WhatOverlapsSharesTheGpu) {
  // The first kernel is alone for 1000 ns; then each goes at half its speed, the copy at its own.
  const uint64_t first = 2 * kLaunch + 2 * (kSlow - kLaunch);
  const Times expected = {3 * kLaunch + kCopy, first, first + kLaunch};
  const std::string lines = "sharing = mps\nconcurrent_kernels = 2\ncopy_engines = 2\n";
  EXPECT_EQ(TimesWith(lines, "side by side"), expected);
  EXPECT_EQ(TimesWith(lines, "everything"), TimesWith(lines, "everything"));
}

TEST_F(VirtualTime, MappingCallsCostTheirTime) {
  const Times times = TimesWith("map_ns = 7000\nlaunch_ns = 0\nserialised = yes\n", "mapping");
  EXPECT_EQ(times, Times{2 * 7000});
}

int Mapping() {
  const TimedProgram p;
  const uint64_t start = p.Clock();
  const size_t bytes = Granularity();
  const CUmemAllocationProp memory = DeviceMemory();
  CUmemGenericAllocationHandle handle = 0;
  p.Must(cuMemCreate(&handle, bytes, &memory, 0), "create");
  CUdeviceptr address = 0;
  p.Must(cuMemAddressReserve(&address, 2 * bytes, 0, 0, 0), "reserve");
  p.Must(cuMemMap(address, bytes, 0, handle, 0), "map");
  p.Must(cuMemMap(address + bytes, bytes, 0, handle, 0), "map");
  return Send({p.Clock() - start});
}
const bool kMapping = AddRole("mapping", Mapping);

/// Threads that wait for each other outside the driver, which cannot be seen there.
int Threads() {
  TimedProgram p;
  CUcontext context = nullptr;
  p.Must(cuCtxGetCurrent(&context), "current");
  const uint64_t start = p.Clock();
  std::thread other([&] {
    p.Must(cuCtxSetCurrent(context), "current");
    p.Slow(p.a);
    p.Must(cuStreamSynchronize(p.a), "synchronise");
  });
  other.join();
  const uint64_t joined = p.Clock();
  // A host function wakes a thread that sleeps outside the driver.
  struct Word {
    std::mutex mutex;
    std::condition_variable changed;
    bool called = false;
  } word;
  p.Short(p.a);
  p.Must(cuLaunchHostFunc(
             p.a,
             [](void* pointer) {
               auto* w = static_cast<Word*>(pointer);
               const std::lock_guard lock(w->mutex);
               w->called = true;
               w->changed.notify_one();
             },
             &word),
         "host function");
  p.Slow(p.a);
  {
    std::unique_lock lock(word.mutex);
    word.changed.wait(lock, [&] { return word.called; });
  }
  p.Work(0);
  return Send({joined - start, p.Clock() - joined});
}
const bool kThreads = AddRole("threads", Threads);

TEST_F(VirtualTime, WhoWaitsOutsideTheDriverIsCountedAndHoldsUpNobody) {
  EXPECT_EQ(Stat("stalls"), 0u);
  EXPECT_EQ(TimesOf("threads"), (Times{kLaunch + kSlow, kLaunch + kShort}));
  EXPECT_EQ(Stat("stalls"), 1u);
}

/// Nobody can tell the device that a thread writes to memory.
int WrittenWord() {
  TimedProgram p;
  const uint64_t start = p.Clock();
  const std::string waiter = "/proc/self/task/" + std::to_string(getpid()) + "/stat";
  auto* word = static_cast<uint64_t*>(p.host);
  *word = 0;
  p.Must(cuStreamWaitValue64_v2(p.a, reinterpret_cast<CUdeviceptr>(word), 1, 0), "wait");
  p.Short(p.a);
  std::thread writer([&] {
    // Once the other thread sleeps in the driver, as good as one can see that.
    for (std::string state; state != "S"; std::ifstream(waiter) >> state >> state >> state) {
    }
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
  });
  p.Must(cuStreamSynchronize(p.a), "synchronise");
  writer.join();
  return Send({p.Clock() - start});
}
const bool kWrittenWord = AddRole("written word", WrittenWord);

TEST_F(VirtualTime, AWordThatAThreadWritesIsSeen) {
  EXPECT_EQ(TimesOf("written word"), Times{2 * kLaunch + kShort});
}

int Init() { return Send({static_cast<uint64_t>(cuInit(0))}); }
const bool kInit = AddRole("init", Init);

int InitAndStay() {
  WriteToTest(static_cast<uint64_t>(cuInit(0)));
  ReadFromTest();
  return 0;
}
const bool kInitAndStay = AddRole("init and stay", InitAndStay);

TEST_F(VirtualTime, ASecondProcessIsRefused) {
  OtherProcess first("init and stay");
  EXPECT_EQ(first.Read(), static_cast<uint64_t>(CUDA_SUCCESS));
  EXPECT_EQ(TimesOf("init"), Times{static_cast<uint64_t>(CUDA_ERROR_NO_DEVICE)});
  first.Write(0);
  EXPECT_EQ(first.Join(), 0);
  EXPECT_EQ(TimesOf("init"), Times{static_cast<uint64_t>(CUDA_SUCCESS)});
}

TEST_F(VirtualTime, SeveralGpusAreRefused) {
  const std::string command = std::string(SLUICE_SIMGPU_CTL) +
                              " up /tmp/sluice-no-such-gpu --gpus 2 --memory 64MiB --machine " +
                              SLUICE_MACHINE_VIRTUAL;
  EXPECT_EQ(WEXITSTATUS(system(command.c_str())), 2);
}

}  // namespace
}  // namespace sluice::contract
