// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <algorithm>

#include "tests/support/syscall_counter.h"
#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

constexpr size_t kIterations = 40;
// By then the cycle is known, and pages and handles are set up.
constexpr size_t kSettled = 20;

/// The same bytes and launches in `blocks` blocks.
std::vector<std::string> Cycle(uint64_t blocks) {
  constexpr uint64_t kBytes = 8 << 20;
  constexpr uint64_t kLaunches = 64;
  return {Program("WORKLOAD"),
          "--iterations",
          std::to_string(kIterations),
          "--blocks",
          std::to_string(blocks),
          "--block-bytes",
          std::to_string(kBytes / blocks),
          "--launches-per-block",
          std::to_string(kLaunches / blocks),
          "--sync",
          "iteration",
          "--progress"};
}

/// Waiting for the simulated GPU and waking it: as many calls as luck wants. Sluice's own locks are
/// never contended in a program with one thread, so they do not enter the kernel.
constexpr int64_t kWaits[] = {SYS_futex, SYS_nanosleep, SYS_clock_nanosleep, SYS_sched_yield};

/// The system calls of an iteration without waits: the median over those after the start.
SyscallSpan MedianIteration(TracedRun run) {
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_GT(run.spans.size(), kIterations);
  if (run.spans.size() <= kIterations) return {};
  for (SyscallSpan& span : run.spans) {
    for (const int64_t wait : kWaits) {
      const auto found = span.by_number.find(wait);
      if (found == span.by_number.end()) continue;
      span.total -= found->second;
      span.by_number.erase(found);
    }
  }
  std::vector<SyscallSpan> settled(run.spans.begin() + kSettled,
                                   run.spans.begin() + kIterations - 1);
  std::sort(settled.begin(), settled.end(),
            [](const SyscallSpan& a, const SyscallSpan& b) { return a.total < b.total; });
  return settled[settled.size() / 2];
}

SyscallSpan WithSluice(uint64_t blocks) {
  const TestBed bed;
  std::vector<std::string> command = {Program("BIN") + "/sluice", "run", "--runtime-dir",
                                      bed.runtime_dir(), "--"};
  const std::vector<std::string> cycle = Cycle(blocks);
  command.insert(command.end(), cycle.begin(), cycle.end());
  return MedianIteration(CountSyscalls(command, bed.environment()));
}

SyscallSpan WithoutSluice(uint64_t blocks) {
  BedOptions options;
  options.start_noded = false;
  options.oracle = false;
  const TestBed bed(options);
  return MedianIteration(CountSyscalls(Cycle(blocks), bed.environment()));
}

TEST(Syscalls, OfSluiceDoNotGrowWithTheNumberOfBlocks) {
  const SyscallSpan with_32 = WithSluice(32);
  const SyscallSpan with_64 = WithSluice(64);
  const SyscallSpan without_32 = WithoutSluice(32);
  const SyscallSpan without_64 = WithoutSluice(64);
  const auto added_32 = static_cast<int64_t>(with_32.total - without_32.total);
  const auto added_64 = static_cast<int64_t>(with_64.total - without_64.total);
  EXPECT_EQ(added_64, added_32) << "with 32: " << Describe(with_32)
                                << "\nwith 64: " << Describe(with_64)
                                << "\nwithout 32: " << Describe(without_32)
                                << "\nwithout 64: " << Describe(without_64);
}

}  // namespace
}  // namespace sluice::testing
