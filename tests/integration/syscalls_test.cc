// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdlib>

#include "tests/support/peer.h"
#include "tests/support/syscall_counter.h"

namespace sluice::testing {
namespace {

constexpr size_t kIterations = 40;
// By then the cycle is known, and pages and handles are set up.
constexpr size_t kSettled = 20;

/// So many that this many and twice as many both have as many gates as an iteration may have
/// (GateOptions::max_gates): what is left to grow is what one block costs.
constexpr uint64_t kBlocks = 72;
constexpr uint64_t kBlockBytes = 128 << 10;

/// The same bytes and launches in `blocks` blocks.
std::vector<std::string> Cycle(uint64_t blocks) {
  return {Program("WORKLOAD"),
          "--iterations",
          std::to_string(kIterations),
          "--blocks",
          std::to_string(blocks),
          "--block-bytes",
          std::to_string(kBlockBytes * kBlocks / blocks),
          "--base-bytes",
          "64KiB",
          "--launches-per-block",
          std::to_string(2 * kBlocks / blocks),
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

SyscallSpan Traced(const TestBed& bed, uint64_t blocks) {
  std::vector<std::string> command = {Program("BIN") + "/sluice", "run", "--runtime-dir",
                                      bed.runtime_dir(), "--"};
  const std::vector<std::string> cycle = Cycle(blocks);
  command.insert(command.end(), cycle.begin(), cycle.end());
  return MedianIteration(CountSyscalls(command, bed.environment()));
}

/// Alone: nobody wants its memory, so it keeps what it has and asks for nothing.
SyscallSpan Alone(uint64_t blocks) { return Traced(TestBed(), blocks); }

/// Beside a job whose peak does not fit next to its own: it gives back at every gate what it does
/// not need, the other one takes that, and later it asks for it again.
SyscallSpan WhileLending(uint64_t blocks) {
  BedOptions options;
  options.pool = "16MiB";
  TestBed bed(options);
  Peer peer(bed);
  peer.AwaitProfile();
  const SyscallSpan span = Traced(bed, blocks);
  peer.FinishAndCompare();
  bed.StopDaemon();
  const scheduler::AuditReport report = bed.log().Audit();
  EXPECT_TRUE(report.ok()) << Violations(report);
  for (const auto& [id, job] : report.jobs) {
    // At least a unit in each iteration that is measured. Whether the peer lends, too, is a matter
    // of when the traced job, which is slow, comes to its gates: nothing here is about that.
    if (id == peer.job()) continue;
    EXPECT_GT(job.lent_units, kIterations - kSettled) << job.name;
  }
  return span;
}

SyscallSpan WithoutSluice(uint64_t blocks) {
  BedOptions options;
  options.start_noded = false;
  options.oracle = false;
  const TestBed bed(options);
  return MedianIteration(CountSyscalls(Cycle(blocks), bed.environment()));
}

void ExpectNoMoreForTwiceTheBlocks(SyscallSpan (*with_sluice)(uint64_t), int64_t slack) {
  const SyscallSpan with_few = with_sluice(kBlocks);
  const SyscallSpan with_many = with_sluice(2 * kBlocks);
  const SyscallSpan without_few = WithoutSluice(kBlocks);
  const SyscallSpan without_many = WithoutSluice(2 * kBlocks);
  const auto added_few = static_cast<int64_t>(with_few.total - without_few.total);
  const auto added_many = static_cast<int64_t>(with_many.total - without_many.total);
  EXPECT_LE(std::abs(added_many - added_few), slack)
      << "with few: " << Describe(with_few) << "\nwith many: " << Describe(with_many)
      << "\nwithout few: " << Describe(without_few) << "\nwithout many: " << Describe(without_many);
}

// What is measured here is allocating, freeing, launching and marking: none of it talks to the
// daemon.
TEST(Syscalls, DoNotGrowWithTheBlocksOfAJobThatKeepsItsMemory) {
  ExpectNoMoreForTwiceTheBlocks(Alone, 0);
}

// Here also releasing and asking: messages by the bytes that move and by when the GPU has passed
// them, which is another time in each run: from 27 calls less to 28 more in eight runs. A call for
// each allocation and free of the further blocks would be 2 * kBlocks more.
TEST(Syscalls, DoNotGrowWithTheBlocksOfAJobThatLendsItsMemory) {
  ExpectNoMoreForTwiceTheBlocks(WhileLending, kBlocks - 1);
}

}  // namespace
}  // namespace sluice::testing
