// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <benchmark/benchmark.h>
#include <time.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "bench/bed.h"
#include "bench/median.h"
#include "bench/null_driver.h"
#include "bench/report.h"
#include "bench/sequence.h"
#include "bench/watcher.h"
#include "intercept/session/client.h"

/// What cuMemAllocAsync and cuMemFreeAsync cost a program below the hook: streams, locks, the block
/// itself, the record for the daemon (which reads it, on another core) and the marks. The driver
/// does nothing, so that all of it is the library's. In turn: iterations on one stream and another,
/// so that each wants what the other one has freed and the GPU has passed.
namespace sluice::bench {
namespace {

// Of the sizes of a real job, because marks are queued by bytes; the simulated GPU takes that much
// of the host's memory. Both sequences fit.
constexpr uint64_t kPoolBytes = 4ull << 30;
constexpr uint64_t kUnitBytes = 8ull << 20;
constexpr uint64_t kHandleBytes = 64ull << 20;

constexpr int kWarmUp = 4;
// Until the daemon knows the cycle and the client follows it.
constexpr int kUntilFollowed = 12;

constinit Client g_client;

CUstream Stream(uintptr_t number) { return reinterpret_cast<CUstream>(0x1000 + 0x10 * number); }

// Of ConnectOnce.
std::unique_ptr<Bed> g_bed;

/// The client of this process in conversation with a daemon of its own; empty, or why it is not.
const std::string& ConnectOnce() {
  static Job job;
  static const std::string error = []() -> std::string {
    Result<std::unique_ptr<Bed>> started = Bed::Start({.pool_bytes = kPoolBytes,
                                                       .unit_bytes = kUnitBytes,
                                                       .handle_bytes = kHandleBytes,
                                                       .flags = {}});
    if (!started.ok()) return started.status().message();
    g_bed = std::move(*started);
    const Result<std::array<uint8_t, 16>> uuid = g_bed->GpuUuid();
    if (!uuid.ok()) return uuid.status().message();
    Result<Job> registered = g_bed->Register("bench");
    if (!registered.ok()) return registered.status().message();
    job = std::move(*registered);
    g_client.Configure(&NullDriver(*uuid), job.socket.c_str(), {});
    return {};
  }();
  return error;
}

CUfunction FunctionOf(uint32_t number) {
  return reinterpret_cast<CUfunction>(uintptr_t{0x10000} + uintptr_t{64} * number);
}

// Which streams an iteration works on, by its number.
struct Streams {
  CUstream allocates;
  CUstream frees;
};
Streams One(uintptr_t) { return {Stream(0), Stream(0)}; }
Streams InTurn(uintptr_t iteration) { return {Stream(iteration % 2), Stream(iteration % 2)}; }
Streams FreedElsewhere(uintptr_t) { return {Stream(0), Stream(1)}; }

struct ThroughClient {
  CUresult Alloc(CUdeviceptr* out, size_t bytes, CUstream stream) const {
    return g_client.AllocAsync(out, bytes, stream);
  }
  CUresult Free(CUdeviceptr address, CUstream stream) const {
    return g_client.FreeAsync(address, stream);
  }
  CUresult Launch(CUfunction function, CUstream stream) const {
    return g_client.Launch(function, stream, [] { return CUDA_SUCCESS; });
  }
};

// What is there without Sluice: calls to a driver that does nothing, too.
struct WithoutClient {
  CUresult Alloc(CUdeviceptr* out, size_t bytes, CUstream stream) const {
    return alloc(out, bytes, stream);
  }
  CUresult Free(CUdeviceptr address, CUstream stream) const { return free(address, stream); }
  CUresult Launch(CUfunction, CUstream) const { return CUDA_SUCCESS; }

  // Volatile: a call that nobody can leave out.
  CUresult (*volatile alloc)(CUdeviceptr*, size_t, CUstream) = [](CUdeviceptr* out, size_t,
                                                                  CUstream) {
    *out = 1;
    return CUDA_SUCCESS;
  };
  CUresult (*volatile free)(CUdeviceptr, CUstream) = [](CUdeviceptr, CUstream) {
    return CUDA_SUCCESS;
  };
};

// One iteration; false when there is no memory for a block.
template <class Calls>
bool Run(const Calls& calls, const BlockSequence& sequence, Streams streams,
         std::vector<CUdeviceptr>& address) {
  for (const BlockStep& step : sequence.steps) {
    CUresult result = CUDA_SUCCESS;
    switch (step.kind) {
      case BlockStep::kAlloc:
        result = calls.Alloc(&address[step.number], step.bytes, streams.allocates);
        break;
      case BlockStep::kFree:
        result = calls.Free(address[step.number], streams.frees);
        break;
      case BlockStep::kLaunch:
        result = calls.Launch(FunctionOf(step.number), streams.allocates);
        break;
    }
    if (result != CUDA_SUCCESS) return false;
  }
  return true;
}

void Blocks(benchmark::State& state, const BlockSequence& sequence, Streams (*streams)(uintptr_t)) {
  if (const std::string& error = ConnectOnce(); !error.empty()) {
    state.SkipWithError(error.c_str());
    return;
  }
  std::vector<CUdeviceptr> address(sequence.blocks);
  uintptr_t turn = 0;
  const auto run = [&] { return Run(ThroughClient{}, sequence, streams(turn++), address); };
  // Afterwards what it needs is leased.
  bool ok = true;
  for (int i = 0; i < kWarmUp; ++i) ok = ok && run();
  for (auto _ : state) ok = ok && run();
  if (!ok) state.SkipWithError("the pool is too small for the sequence");
  // The next benchmark starts with nothing leased, whatever this one has left behind.
  static_cast<void>(g_client.ContextDestroy(kNullContext));
  const auto pairs = static_cast<int64_t>(state.iterations() * sequence.blocks);
  state.SetItemsProcessed(pairs);
  state.counters[kPairCounter] = benchmark::Counter(
      static_cast<double>(pairs) * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// The GPU takes 100 ms for what is issued here within one. The daemon has the time between two
// iterations to read them; else it would lose the job's cycle, and the job would follow none, or
// read while they are issued and slow them down where two cores are one. Not asleep: a core that
// wakes up is slow at first.
void LetTheDaemonRead() {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(4);
  while (std::chrono::steady_clock::now() < until) {
  }
}

template <class Iterate>
void UntilFollowed(Iterate iterate) {
  for (int i = 0; i < kUntilFollowed; ++i) {
    iterate();
    LetTheDaemonRead();
  }
}

template <class Iterate>
void Measure(benchmark::State& state, Iterate iterate) {
  for (auto _ : state) {
    iterate();
    state.PauseTiming();
    LetTheDaemonRead();
    state.ResumeTiming();
  }
}

/// The launch hook below its first line: records, marks, credit, the profile that is followed. As
/// many launches as a launch-bound job has (kLaunchBound), in an order without a period of its own.
/// The driver does nothing, so that all of it is the library's. CPU time is counted: the one answer
/// of an iteration that is waited for, at its gate, costs a lease's round trip.
void Launches(benchmark::State& state) {
  if (const std::string& error = ConnectOnce(); !error.empty()) {
    state.SkipWithError(error.c_str());
    return;
  }
  std::vector<CUfunction> functions;
  uint32_t random = 1;
  for (uint32_t i = 0; i < kLaunchBound.launches; ++i) {
    random = random * 1664525u + 1013904223u;
    functions.push_back(FunctionOf(random >> 26));
  }
  bool ok = true;
  const auto iterate = [&] {
    CUdeviceptr block = 0;
    ok = ok && g_client.AllocAsync(&block, 1 << 20, Stream(0)) == CUDA_SUCCESS;
    for (const CUfunction function : functions) {
      static_cast<void>(g_client.Launch(function, Stream(0), [] { return CUDA_SUCCESS; }));
    }
    ok = ok && g_client.FreeAsync(block, Stream(0)) == CUDA_SUCCESS;
  };
  UntilFollowed(iterate);
  Measure(state, iterate);
  if (!ok) state.SkipWithError("no memory for a block");
  static_cast<void>(g_client.ContextDestroy(kNullContext));
  state.counters[kLaunchCounter] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kLaunchBound.launches * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(Launches)->Name("hooks/launches");

// The stream that PyTorch works on unless it is told otherwise.
const Streams kDefaultStream = {CU_STREAM_LEGACY, CU_STREAM_LEGACY};

bool ReadLaunchBound(benchmark::State& state, BlockSequence* sequence) {
  *sequence = ReadSequence(kLaunchBound.name);
  if (sequence->launches == kLaunchBound.launches && sequence->blocks == kLaunchBound.blocks) {
    return true;
  }
  state.SkipWithError("bench/data has another job than bench/report.h");
  return false;
}

/// The launch-bound job's iteration as it was recorded: blocks and launches in their order. CPU
/// time as above; what it takes longer than without is all that Sluice adds to it.
void Iteration(benchmark::State& state) {
  if (const std::string& error = ConnectOnce(); !error.empty()) {
    state.SkipWithError(error.c_str());
    return;
  }
  BlockSequence sequence;
  if (!ReadLaunchBound(state, &sequence)) return;
  std::vector<CUdeviceptr> address(sequence.blocks);
  bool ok = true;
  const auto run = [&] { ok = ok && Run(ThroughClient{}, sequence, kDefaultStream, address); };
  UntilFollowed(run);
  const uint64_t marks_before = NullDriverMarks();
  Measure(state, run);
  state.counters[kMarkCounter] = benchmark::Counter(
      static_cast<double>(NullDriverMarks() - marks_before), benchmark::Counter::kAvgIterations);
  if (!ok) state.SkipWithError("the pool is too small for the sequence");
  static_cast<void>(g_client.ContextDestroy(kNullContext));
}
BENCHMARK(Iteration)->Name("iteration/launch_bound");

double NowNs(clockid_t clock) {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// What an iteration takes of the CPU, and on a clock: its gate's answer included, for which it
/// waits while the daemon tells others.
struct Taken {
  double cpu_ns = 0;
  double wall_ns = 0;
};

/// The same iteration in turns, in every second of which somebody looks at the daemon: a machine
/// that others use, too, changes its speed more than that can, but seldom between two turns. There
/// are as many jobs as a daemon has to tell of in bench/scrape.
void IterationWatched(benchmark::State& state) {
  constexpr int kIterations = 50;
  constexpr int kJobs = 64;
  if (const std::string& error = ConnectOnce(); !error.empty()) {
    state.SkipWithError(error.c_str());
    return;
  }
  BlockSequence sequence;
  if (!ReadLaunchBound(state, &sequence)) return;
  std::vector<CUdeviceptr> address(sequence.blocks);
  bool ok = true;
  const auto run = [&] { ok = ok && Run(ThroughClient{}, sequence, kDefaultStream, address); };
  const auto turn = [&] {
    std::vector<double> cpu_ns;
    std::vector<double> wall_ns;
    for (int i = 0; i < kIterations; ++i) {
      const Taken began = {NowNs(CLOCK_THREAD_CPUTIME_ID), NowNs(CLOCK_MONOTONIC)};
      run();
      wall_ns.push_back(NowNs(CLOCK_MONOTONIC) - began.wall_ns);
      cpu_ns.push_back(NowNs(CLOCK_THREAD_CPUTIME_ID) - began.cpu_ns);
      LetTheDaemonRead();
    }
    return Taken{Median(cpu_ns), Mean(wall_ns)};
  };
  UntilFollowed(run);
  std::vector<Job> others;
  for (int i = 1; i < kJobs; ++i) {
    Result<Job> other = g_bed->Register("other-" + std::to_string(i));
    ok = ok && other.ok();
    if (other.ok()) others.push_back(std::move(*other));
  }
  std::vector<double> ratios;
  std::vector<double> waits_ns;
  for (auto _ : state) {
    const Taken alone = turn();
    const Watcher watcher(g_bed->runtime_dir());
    const Taken watched = turn();
    if (watcher.answers() == 0) state.SkipWithError("the daemon tells nothing");
    ratios.push_back(watched.cpu_ns / alone.cpu_ns);
    waits_ns.push_back(watched.wall_ns - alone.wall_ns);
  }
  if (!ok) state.SkipWithError("the pool is too small for the sequence, or for as many jobs");
  static_cast<void>(g_client.ContextDestroy(kNullContext));
  state.counters[kWatchedCounter] = Median(ratios);
  state.counters[kWaitedCounter] = Median(waits_ns);
}
BENCHMARK(IterationWatched)->Name("iteration/watched")->Iterations(11);

void IterationWithout(benchmark::State& state) {
  BlockSequence sequence;
  if (!ReadLaunchBound(state, &sequence)) return;
  std::vector<CUdeviceptr> address(sequence.blocks);
  const WithoutClient without;
  bool ok = true;
  for (auto _ : state) ok = ok && Run(without, sequence, kDefaultStream, address);
  if (!ok) state.SkipWithError("the driver that does nothing failed");
}
BENCHMARK(IterationWithout)->Name("iteration/without");

const int kRegistered = [] {
  for (const char* name : {"resnet50", "bert-base"}) {
    const BlockSequence sequence = ReadSequence(name);
    const std::string suffix = std::string("/") + name;
    benchmark::RegisterBenchmark(("blocks/client" + suffix).c_str(), Blocks, sequence, One);
    benchmark::RegisterBenchmark(("blocks/client_in_turn" + suffix).c_str(), Blocks, sequence,
                                 InTurn);
    benchmark::RegisterBenchmark(("blocks/client_freed_elsewhere" + suffix).c_str(), Blocks,
                                 sequence, FreedElsewhere);
  }
  return 0;
}();

}  // namespace
}  // namespace sluice::bench
