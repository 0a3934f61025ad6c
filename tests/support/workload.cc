// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>
#include <vector>

#include "common/unique_fd.h"
#include "tests/support/driver.h"
#include "tests/support/pattern_kernels.h"
#include "tests/support/workload_options.h"

/// A client of the CUDA driver with a cyclic need for memory: blocks are allocated on the way up
/// and freed on the way down, a launch or more for each. It knows nothing of Sluice. See
/// WorkloadUsage().
namespace sluice::testing {
namespace {

enum ExitCode {
  kWell = 0,
  kUsage = 2,
  kDriverFailed = 3,
  kOutOfMemory = 4,
  kWrongBytes = 5,
  kOverLimitGranted = 6
};

/// One write each, unbuffered: a test that counts system calls or waits for a line sees it at once.
void Say(const std::string& line) {
  const std::string text = line + "\n";
  [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
}

/// Standard input: when it ends, and the lines on it that were not taken yet.
class Input {
 public:
  bool Ended(int timeout_ms) {
    while (!ended_ && Read(timeout_ms)) {
    }
    return ended_;
  }
  /// False: none came in that time, or none will.
  bool TakeLine(int timeout_ms) {
    while (lines_ == 0 && !ended_ && Read(timeout_ms)) {
    }
    if (lines_ == 0) return false;
    --lines_;
    return true;
  }

 private:
  bool Read(int timeout_ms) {
    char bytes[64];
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    if (::poll(&input, 1, timeout_ms) <= 0) return false;
    const ssize_t size = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (size > 0) lines_ += std::count(bytes, bytes + size, '\n');
    ended_ = size <= 0;
    return true;
  }

  int64_t lines_ = 0;
  bool ended_ = false;
};

/// Another rank of the same program, on another GPU. Each has a named pipe that it is called by.
class OtherRank {
 public:
  /// Both exist. Open for both directions, so that nobody waits for the other to open it.
  OtherRank(const std::string& mine, const std::string& others)
      : mine_(::open(mine.c_str(), O_RDWR | O_CLOEXEC)),
        others_(::open(others.c_str(), O_RDWR | O_CLOEXEC)) {
    if (!mine_.valid() || !others_.valid()) throw std::runtime_error("--meet: open");
  }
  /// Returns when both have called it equally often.
  void Meet() {
    char byte = 0;
    if (::write(others_.get(), &byte, 1) != 1 || ::read(mine_.get(), &byte, 1) != 1) {
      throw std::runtime_error("--meet: the pipes");
    }
  }

 private:
  UniqueFd mine_;
  UniqueFd others_;
};

class Workload {
 public:
  explicit Workload(const WorkloadOptions& options)
      : options_(options), next_growth_(options.grow_iteration) {
    driver_.KillAt(options.kill_self_at_op);
    CUdevice device = 0;
    CUcontext context = nullptr;
    SLUICE_CU(driver_, cuInit, 0u);
    SLUICE_CU(driver_, cuDeviceGet, &device, 0);
    SLUICE_CU(driver_, cuDevicePrimaryCtxRetain, &context, device);
    SLUICE_CU(driver_, cuCtxSetCurrent, context);
    streams_.resize(options.stream_count);
    for (CUstream& stream : streams_) {
      SLUICE_CU(driver_, cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    }
    if (options.capture) {
      SLUICE_CU(driver_, cuStreamCreate, &capture_stream_, CU_STREAM_NON_BLOCKING);
    }
    for (CUevent& event : marks_) SLUICE_CU(driver_, cuEventCreate, &event, CU_EVENT_DEFAULT);
  }

  /// The primary context goes, and with it all that was made in it.
  void ReleaseContext() { SLUICE_CU(driver_, cuDevicePrimaryCtxRelease_v2, 0); }

  int Run() {
    if (options_.no_memory) {
      HoldIfAsked();
      return kWell;
    }
    if (options_.over_limit_bytes != 0 && !RefusesOverLimit()) return kOverLimitGranted;
    kernels_.emplace_back(driver_).set_rounds(static_cast<uint32_t>(options_.rounds));
    if (options_.read_beside) beside_.emplace();
    if (!options_.called_by.empty()) other_rank_.emplace(options_.called_by, options_.calls);
    if (options_.one_shot) {
      OneShot();
    } else {
      Cycle();
    }
    PatternCounts counts = kernels_.front().Read();
    if (beside_) counts.mismatches += beside_->kernels.Read().mismatches;
    Report(counts);
    return counts.mismatches == 0 ? kWell : kWrongBytes;
  }

 private:
  struct Block {
    CUdeviceptr address = 0;
    uint64_t bytes = 0;
    uint64_t seed = 0;
    CUstream stream = nullptr;
  };

  /// What another thread uses: its own way to the driver, kernels and stream.
  struct Beside {
    Beside() : kernels(driver) {
      SLUICE_CU(driver, cuCtxGetCurrent, &context);
      SLUICE_CU(driver, cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    }
    Driver driver;
    PatternKernels kernels;
    CUcontext context = nullptr;
    CUstream stream = nullptr;
  };

  /// Has the GPU check a block again and again, in a thread of its own, until it goes.
  class Reader {
   public:
    Reader(Beside& beside, const Block& block)
        : thread_([this, &beside, block] {
            SLUICE_CU(beside.driver, cuCtxSetCurrent, beside.context);
            do {
              beside.kernels.Check(block.address, block.bytes, block.seed, beside.stream);
              SLUICE_CU(beside.driver, cuStreamSynchronize, beside.stream);
            } while (!stop_);
          }) {}
    ~Reader() {
      stop_ = true;
      thread_.join();
    }

   private:
    std::atomic<bool> stop_{false};
    std::thread thread_;
  };

  bool RefusesOverLimit() {
    const auto before = std::chrono::steady_clock::now();
    CUdeviceptr address = 0;
    const CUresult result =
        driver_.Try(&DriverTable::cuMemAlloc_v2, &address, options_.over_limit_bytes);
    const auto took = std::chrono::steady_clock::now() - before;
    if (result == CUDA_SUCCESS) return false;
    Say("over_limit=" + ResultName(result));
    Say("over_limit_us=" +
        std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(took).count()));
    return true;
  }

  Block Allocate(uint64_t bytes, uint64_t seed, CUstream stream) {
    Block block = {0, bytes, seed, stream};
    const auto before = std::chrono::steady_clock::now();
    if (options_.sync_alloc) {
      SLUICE_CU(driver_, cuMemAlloc_v2, &block.address, bytes);
    } else {
      SLUICE_CU(driver_, cuMemAllocAsync, &block.address, bytes, stream);
    }
    slowest_alloc_ = std::max(slowest_alloc_, std::chrono::steady_clock::now() - before);
    live_bytes_ += bytes;
    peak_bytes_ = std::max(peak_bytes_, live_bytes_);
    BeforeLaunch();
    kernels_.front().Fill(block.address, bytes, seed, stream);
    return block;
  }

  void Touch(Block& block, uint64_t seed) {
    BeforeLaunch();
    kernels_.front().Touch(block.address, block.bytes, block.seed, seed, block.stream);
    block.seed = seed;
  }

  void Free(const Block& block) {
    if (!options_.use_after_free) Check(block);
    if (options_.sync_alloc) {
      SLUICE_CU(driver_, cuMemFree_v2, block.address);
    } else {
      SLUICE_CU(driver_, cuMemFreeAsync, block.address, block.stream);
    }
    if (options_.use_after_free) Check(block);
    live_bytes_ -= block.bytes;
  }

  void Check(const Block& block) {
    BeforeLaunch();
    kernels_.front().Check(block.address, block.bytes, block.seed, block.stream);
  }

  void BeforeLaunch() {
    ++launches_;
    if (launches_ == options_.fork_at_launch) Fork(false);
    if (launches_ == options_.use_in_child) Fork(true);
  }

  void Fork(bool use_driver) {
    int answer[2];
    if (::pipe(answer) != 0) throw std::runtime_error("pipe");
    const pid_t child = ::fork();
    if (child == 0) {
      // CUDA allows nothing in a forked child; what counts is that it gets an answer and does no
      // harm.
      CUdeviceptr address = 0;
      CUresult result = CUDA_SUCCESS;
      if (use_driver) {
        result = driver_.Try(&DriverTable::cuMemAllocAsync, &address, options_.block_bytes,
                             streams_.front());
      }
      if (::write(answer[1], &result, sizeof result) < 0) ::_exit(1);
      input_.Ended(-1);
      ::_exit(0);
    }
    ::close(answer[1]);
    CUresult result = CUDA_ERROR_UNKNOWN;
    if (::read(answer[0], &result, sizeof result) < 0) throw std::runtime_error("pipe");
    ::close(answer[0]);
    Say("forked=" + std::to_string(child));
    if (use_driver) Say("child_alloc=" + ResultName(result));
  }

  uint64_t Seed(uint64_t iteration, uint64_t block, uint64_t step) const {
    return Mix(Mix(Mix(options_.seed + 1) + iteration) + block * 4096 + step);
  }

  void OneShot() {
    Block block = Allocate(options_.block_bytes, Seed(0, 0, 0), streams_.front());
    SLUICE_CU(driver_, cuStreamSynchronize, block.stream);
    HoldIfAsked();
    if (options_.exec_holding) ExecuteAnew();
    Free(block);
  }

  void ExecuteAnew() {
    const std::string bytes = std::to_string(options_.block_bytes);
    ::execl("/proc/self/exe", "workload", "--one-shot", "--block-bytes", bytes.c_str(), nullptr);
    throw std::runtime_error("execl");
  }

  void HoldIfAsked() {
    if (!options_.hold) return;
    Say("holding");
    input_.Ended(-1);
  }

  void Cycle() {
    constexpr uint64_t kBase = ~uint64_t{0} >> 16;
    Block base = Allocate(options_.base_bytes, Seed(0, kBase, 0), streams_.front());
    if (options_.compile) {
      Touch(base, Seed(0, kBase, 1));
      Say("compiling");
      input_.Ended(-1);
    }
    uint64_t iteration = 0;
    // Timed over the second half, when whoever watches has learned the cycle.
    const uint64_t first_timed = options_.iterations / 2;
    for (; iteration < options_.iterations || (options_.until_eof && !input_.Ended(0));
         ++iteration) {
      if (options_.progress) Say("iteration " + std::to_string(iteration));
      if (iteration == first_timed) Mark(0);
      launches_per_iteration_ = launches_;
      Touch(base, Seed(iteration + 1, kBase, 0));
      if (options_.capture) {
        TriangleBesideACapture(iteration, &base, Seed(iteration + 1, kBase, 1));
      } else {
        Triangle(iteration);
      }
      launches_per_iteration_ = launches_ - launches_per_iteration_;
      if (iteration + 1 == options_.iterations) Mark(1);
      if (options_.sync_iteration) {
        for (CUstream stream : streams_) SLUICE_CU(driver_, cuStreamSynchronize, stream);
      }
    }
    Say("iterations=" + std::to_string(iteration));
    HoldIfAsked();
    Free(base);
    timed_iterations_ = options_.iterations - first_timed;
  }

  void Triangle(uint64_t iteration) {
    std::vector<Block> blocks;
    for (uint64_t b = 0; b < options_.blocks; ++b) {
      blocks.push_back(Allocate(options_.block_bytes, Seed(iteration, b, 0), StreamOf(b)));
      for (uint64_t step = 1; step < options_.launches_per_block; ++step) {
        Touch(blocks.back(), Seed(iteration, b, step));
      }
    }
    if (Grows(iteration)) Grow(iteration, blocks.front(), options_.grow_bytes);
    if (options_.grow_when_told_bytes != 0 && input_.TakeLine(0)) {
      SLUICE_CU(driver_, cuStreamSynchronize, blocks.front().stream);
      Say("grows when told");
      input_.TakeLine(-1);
      Grow(iteration, blocks.front(), options_.grow_when_told_bytes);
    }
    if (other_rank_) Reduce(blocks.back(), Seed(iteration, options_.blocks, 1));
    const uint64_t down =
        options_.launches_down == 0 ? options_.launches_per_block : options_.launches_down;
    for (uint64_t b = options_.blocks; b-- > 0;) {
      for (uint64_t step = 1; step < down; ++step) {
        Touch(blocks[b], Seed(iteration, b, 2048 + step));
      }
      Free(blocks[b]);
    }
  }

  /// Beside the others, one more for a moment.
  void Grow(uint64_t iteration, const Block& first, uint64_t bytes) {
    std::optional<Reader> reader;
    if (options_.read_beside) {
      SLUICE_CU(driver_, cuStreamSynchronize, first.stream);
      reader.emplace(*beside_, first);
    }
    const Block block = Allocate(bytes, Seed(iteration, options_.blocks, 0), streams_.front());
    reader.reset();
    Free(block);
  }

  /// As a collective operation: the work behind it waits for the other rank.
  void Reduce(Block& block, uint64_t seed) {
    BeforeLaunch();
    kernels_.front().TouchAsNccl(block.address, block.bytes, block.seed, seed, block.stream);
    block.seed = seed;
    SLUICE_CU(driver_, cuStreamSynchronize, block.stream);
    other_rank_->Meet();
  }

  /// No two distances in a row are the same, and all of them together are more launches than the
  /// longest cycle that anybody looks for: what comes regularly is no deviation but a part of a
  /// longer cycle, once that is known.
  bool Grows(uint64_t iteration) {
    if (options_.grow_bytes == 0 || iteration != next_growth_) return false;
    if (options_.grow_every != 0) {
      next_growth_ += options_.grow_every + growths_++ % options_.grow_every;
    }
    return true;
  }

  void TriangleBesideACapture(uint64_t iteration, Block* base, uint64_t seed) {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    SLUICE_CU(driver_, cuStreamBeginCapture_v2, capture_stream_, CU_STREAM_CAPTURE_MODE_RELAXED);
    const uint64_t before = driver_.operations();
    kernels_.front().Touch(base->address, base->bytes, base->seed, seed, capture_stream_);
    Triangle(iteration);
    captured_operations_ += driver_.operations() - before;
    SLUICE_CU(driver_, cuStreamEndCapture, capture_stream_, &graph);
    SLUICE_CU(driver_, cuGraphInstantiateWithFlags, &exec, graph, 0ULL);
    SLUICE_CU(driver_, cuStreamSynchronize, base->stream);
    SLUICE_CU(driver_, cuGraphLaunch, exec, capture_stream_);
    SLUICE_CU(driver_, cuStreamSynchronize, capture_stream_);
    SLUICE_CU(driver_, cuGraphExecDestroy, exec);
    SLUICE_CU(driver_, cuGraphDestroy, graph);
    base->seed = seed;
  }

  CUstream StreamOf(uint64_t block) const { return streams_[block % streams_.size()]; }

  void Mark(size_t index) { SLUICE_CU(driver_, cuEventRecord, marks_[index], streams_.front()); }

  void Report(const PatternCounts& counts) {
    if (timed_iterations_ != 0) {
      float ms = 0;
      SLUICE_CU(driver_, cuEventElapsedTime, &ms, marks_[0], marks_[1]);
      char text[64];
      std::snprintf(text, sizeof text, "iteration_us=%.3f",
                    1e3 * static_cast<double>(ms) / static_cast<double>(timed_iterations_));
      Say(text);
    }
    const auto slowest = std::chrono::duration_cast<std::chrono::microseconds>(slowest_alloc_);
    Say("slowest_alloc_us=" + std::to_string(slowest.count()));
    Say("peak_bytes=" + std::to_string(peak_bytes_));
    Say("launches=" + std::to_string(launches_));
    Say("launches_per_iteration=" + std::to_string(launches_per_iteration_));
    Say("operations=" + std::to_string(driver_.operations()));
    if (options_.capture) {
      Say("operations_beside_a_capture=" + std::to_string(captured_operations_));
    }
    Say("words=" + std::to_string(counts.words));
    Say("mismatches=" + std::to_string(counts.mismatches));
    char digest[32];
    std::snprintf(digest, sizeof digest, "digest=%016llx",
                  static_cast<unsigned long long>(counts.digest));
    Say(digest);
  }

  const WorkloadOptions options_;
  Input input_;
  Driver driver_;
  std::vector<PatternKernels> kernels_;
  std::optional<Beside> beside_;
  std::optional<OtherRank> other_rank_;
  std::vector<CUstream> streams_;
  CUstream capture_stream_ = nullptr;
  uint64_t captured_operations_ = 0;
  CUevent marks_[2] = {};
  uint64_t next_growth_;  // iteration
  uint64_t growths_ = 0;
  uint64_t launches_ = 0;
  uint64_t launches_per_iteration_ = 0;
  uint64_t timed_iterations_ = 0;
  uint64_t live_bytes_ = 0;
  uint64_t peak_bytes_ = 0;
  std::chrono::steady_clock::duration slowest_alloc_ = {};
};

int Main(const std::vector<std::string>& arguments) {
  if (arguments == std::vector<std::string>{"--help"}) {
    std::fputs(WorkloadUsage().c_str(), stdout);
    return kWell;
  }
  const Result<WorkloadOptions> options = ParseWorkloadOptions(arguments);
  if (!options.ok()) {
    std::fprintf(stderr, "workload: %s\n", options.status().message().c_str());
    return kUsage;
  }
  try {
    int code = kWell;
    for (uint64_t life = 0; life < options->lives && code == kWell; ++life) {
      Workload workload(*options);
      code = workload.Run();
      if (options->lives > 1) {
        workload.ReleaseContext();
        Say("lives=" + std::to_string(life + 1));
      }
    }
    return code;
  } catch (const DriverError& error) {
    std::fprintf(stderr, "workload: %s\n", error.what());
    return error.result() == CUDA_ERROR_OUT_OF_MEMORY ? kOutOfMemory : kDriverFailed;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "workload: %s\n", error.what());
    return kDriverFailed;
  }
}

}  // namespace
}  // namespace sluice::testing

int main(int argc, char** argv) { return sluice::testing::Main({argv + 1, argv + argc}); }
