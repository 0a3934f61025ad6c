// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tools/replay/replayer.h"

#include <time.h>

#include <algorithm>

#include "tools/replay/embedded.h"
#include "tools/replay/host_work.h"

namespace sluice::replay {
namespace {

using scheduler::trace::Event;
using scheduler::trace::EventKind;

constexpr uint64_t kSparseStride = (uint64_t{1} << 20) / kWordBytes;
constexpr uint64_t kTile = uint64_t{kThreads} * kWordsPerThread;
/// Enough blocks of threads to fill a GPU, and not so many that starting them costs time.
constexpr uint64_t kGridBlocks = 1024;
constexpr unsigned kSpoilt = 0xdeadbeef;

double NowMs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

/// CUDA C with all kernels of the plan.
std::string KernelSource(const Plan& plan) {
  std::string source = kKernelSource;
  for (const std::string& kernel : plan.kernels) source += "REPLAY_KERNEL(" + kernel + ")\n";
  return source;
}

uint64_t WordsOf(const Plan& plan, BlockId block) { return plan.block_bytes[block] / kWordBytes; }

}  // namespace

Replayer::Replayer(cuda::ClientDevice& device, const Plan& plan, const RunOptions& options)
    : device_(device),
      plan_(plan),
      options_(options),
      stride_(options.pattern == Pattern::kSparse ? kSparseStride : 1),
      addresses_(plan.block_bytes.size(), 0),
      writers_(plan.block_bytes.size()) {
  if (!plan_.kernels.empty()) {
    const std::string source = KernelSource(plan_);
    device_.LoadKernels(cuda::CompileKernels(source.c_str(), "replay.cu", device_.arch()));
  }
  for (const Launch& launch : plan_.launches) {
    uint64_t most = 1;
    for (const Use& use : launch.uses) {
      most = std::max(most, PlacesOf(WordsOf(plan_, use.block), stride_));
    }
    const uint64_t rows = std::max<uint64_t>(1, launch.uses.size());
    const uint64_t columns = std::max<uint64_t>(1, kGridBlocks / rows);
    slices_.push_back(static_cast<unsigned>(std::min((most + kTile - 1) / kTile, columns)));
  }
  const size_t rows = std::max<size_t>(1, plan_.uses) * options_.ahead;
  tables_ = static_cast<BlockWork*>(device_.AllocateHost(rows * sizeof(BlockWork)));
  counts_ = device_.Allocate(sizeof(Counts));
  device_.Fill(counts_, 0, sizeof(Counts) / sizeof(unsigned));
  for (size_t block = 0; block < plan_.kept_blocks; ++block) {
    addresses_[block] = device_.Allocate(plan_.block_bytes[block]);
  }
  for (uint64_t i = 0; i < options_.ahead + 2; ++i) {
    events_.push_back(device_.NewEvent(CU_EVENT_BLOCKING_SYNC));
  }
}

Report Replayer::Run() {
  const HostWork work;
  device_.WaitForAll();
  const double start = NowMs();
  device_.Record(BeginOf(0));
  uint64_t finished = 0;
  for (uint64_t i = 0; i < options_.iterations; ++i) {
    if (i - finished == options_.ahead) Finish(finished++);
    if (options_.gap_ns != 0) work.For(options_.gap_ns);
    Iterate(i);
    device_.Record(EndOf(i));
    if (options_.sync_every != 0 && (i + 1) % options_.sync_every == 0) device_.WaitForAll();
  }
  while (finished < options_.iterations) Finish(finished++);

  auto* counts = static_cast<Counts*>(device_.AllocateHost(sizeof(Counts)));
  device_.CopyOut(counts, counts_, sizeof(Counts));
  device_.WaitForAll();
  report_.wall_ms = NowMs() - start;
  report_.words_checked = counts->checked;
  report_.mismatches = counts->wrong;
  if (counts->first_operation != 0) {
    const uint64_t operation = counts->first_operation - 1;
    const uint64_t launches = plan_.launches.size();
    report_.first = Mismatch{operation / launches, operation % launches, counts->first_block};
  }
  report_.kernel_ms = static_cast<double>(plan_.kernel_ns) / 1e6;
  report_.peak_live_bytes = plan_.peak_bytes;
  report_.driver_peak_bytes = device_.PeakBytes();
  for (size_t block = 0; block < plan_.kept_blocks; ++block) device_.Free(addresses_[block]);
  device_.Free(counts_);
  return report_;
}

void Replayer::Iterate(uint64_t iteration) {
  next_row_ = tables_ + iteration % options_.ahead * plan_.uses;
  for (const Event& event : plan_.events) {
    switch (event.kind) {
      case EventKind::kAlloc:
        addresses_[event.index] = device_.Allocate(plan_.block_bytes[event.index]);
        writers_.Allocated(event.index);
        break;
      case EventKind::kFree:
        device_.Free(addresses_[event.index]);
        break;
      case EventKind::kOperator:
        Issue(iteration, event.index);
        break;
    }
  }
}

void Replayer::Issue(uint64_t iteration, uint32_t index) {
  const Launch& launch = plan_.launches[index];
  uint64_t ns = launch.ns;
  const BlockWork* rows = next_row_;
  unsigned grid[2] = {1, 1};
  if (options_.pattern != Pattern::kOff) {
    Describe(iteration, index);
    grid[0] = slices_[index];
    grid[1] = static_cast<unsigned>(1 + launch.uses.size());
  }
  uint64_t operation = 1 + iteration * plan_.launches.size() + index;
  uint64_t stride = stride_;
  void* params[] = {&ns, &rows, &counts_, &operation, &stride};
  device_.Launch(plan_.kernels[launch.kernel].c_str(), grid, kThreads, params);
  ++report_.launches;
  if (options_.corrupt) Spoil(index);
}

void Replayer::Describe(uint64_t iteration, uint32_t index) {
  for (const Use& use : plan_.launches[index].uses) {
    const Writers::Work work = writers_.Next(use, iteration, index);
    const uint64_t words = WordsOf(plan_, use.block);
    *next_row_++ = {addresses_[use.block], words, work.check, work.write, use.block, 0};
    if (work.initial) ++report_.blocks_initialised;
    if (work.check == 0) continue;
    ++report_.blocks_checked;
    report_.words_expected += PlacesOf(words, stride_);
  }
}

void Replayer::Spoil(uint32_t index) {
  for (const Use& use : plan_.launches[index].uses) {
    if (use.block == *options_.corrupt) device_.Fill(addresses_[use.block], kSpoilt, 1);
  }
}

void Replayer::Finish(uint64_t iteration) {
  device_.Wait(EndOf(iteration));
  report_.iteration_ms.push_back(device_.ElapsedMs(BeginOf(iteration), EndOf(iteration)));
}

}  // namespace sluice::replay
