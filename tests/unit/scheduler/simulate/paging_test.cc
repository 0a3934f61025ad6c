// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/simulate/paging.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <set>

#include "tests/unit/scheduler/simulate/models.h"

namespace sluice::scheduler::simulate {
namespace {

/// A byte takes a nanosecond and a group of faults ten; pages of 1 byte, evicted one by one.
PagingOptions Bytes(double link = 1e9) {
  PagingOptions options;
  options.page_bytes = 1;
  options.block_bytes = 1;
  options.link_bytes_per_s = link;
  options.fault_group_ns = 0;
  options.groups_per_block = 1;
  return options;
}

/// One kernel per row of touches.
Workload Touching(const std::vector<uint64_t>& buffers, const std::vector<std::vector<Touch>>& rows,
                  const std::vector<std::vector<uint32_t>>& freed = {}) {
  Workload workload;
  Touches& touches = workload.touches;
  touches.buffer_bytes = buffers;
  for (size_t i = 0; i < rows.size(); ++i) {
    touches.touches.insert(touches.touches.end(), rows[i].begin(), rows[i].end());
    touches.touch_ends.push_back(touches.touches.size());
    if (i < freed.size())
      touches.freed.insert(touches.freed.end(), freed[i].begin(), freed[i].end());
    touches.freed_ends.push_back(touches.freed.size());
  }
  return workload;
}

double RunOver(Paging* paging, const Workload& workload, int times = 1) {
  double ns = 0;
  for (int time = 0; time < times; ++time) {
    for (size_t k = 0; k < workload.touches.touch_ends.size(); ++k) {
      ns += paging->Touch(0, k, ns);
      paging->Ended(0, k);
    }
  }
  return ns;
}

TEST(Paging, NothingMovesWhereAllFits) {
  const Workload job = Touching({4, 6}, {{{0, true}}, {{1, true}}, {{0, false}, {1, false}}});
  Paging paging(Bytes(), 10, {&job});
  EXPECT_EQ(RunOver(&paging, job, 5), 0);
  EXPECT_EQ(paging.totals().moved_bytes(), 0u);
  EXPECT_EQ(paging.totals().fault_groups, 0u);
  EXPECT_EQ(paging.resident_bytes(), 10u);
}

TEST(Paging, ACyclicSweepOverMoreThanTheMemoryMissesAlways) {
  // The first page that is missed pushes out the next one that will be wanted.
  std::vector<uint64_t> buffers;
  std::vector<std::vector<Touch>> reads;
  for (uint32_t i = 0; i < 11; ++i) {
    buffers.push_back(3);
    reads.push_back({{i, false}});
  }
  const Workload job = Touching(buffers, reads);
  Paging paging(Bytes(), 32, {&job});  // one byte less than the sweep
  RunOver(&paging, job, 1);
  EXPECT_EQ(paging.totals().in_bytes, 0u) << "the first time there is nothing to copy";
  RunOver(&paging, job, 10);
  EXPECT_EQ(paging.totals().in_bytes, 10u * 33);
  Paging enough(Bytes(), 33, {&job});
  RunOver(&enough, job, 11);
  EXPECT_EQ(enough.totals().in_bytes, 0u);
}

TEST(Paging, ABufferLargerThanTheMemoryGoesThrough) {
  const Workload job = Touching({10}, {{{0, true}}});
  Paging paging(Bytes(), 4, {&job});
  RunOver(&paging, job, 1);
  EXPECT_EQ(paging.totals().out_bytes, 6u);
  EXPECT_EQ(paging.resident_bytes(), 4u);
  RunOver(&paging, job, 3);
  EXPECT_EQ(paging.totals().in_bytes, 3 * 10u);
  EXPECT_EQ(paging.totals().out_bytes, 6u + 3 * 10u);
}

TEST(Paging, WhatIsFreedTakesNothingAndIsNotCopied) {
  const Workload job =
      Touching({6, 6, 6}, {{{0, true}}, {{1, true}}, {{2, true}}}, {{0}, {1}, {2}});
  Paging paging(Bytes(), 6, {&job});
  EXPECT_EQ(RunOver(&paging, job, 4), 0);
  EXPECT_EQ(paging.totals().moved_bytes(), 0u);
  EXPECT_EQ(paging.resident_bytes(), 0u);
}

TEST(Paging, OnlyWhatWasWrittenIsCopiedBack) {
  const Workload job =
      Touching({4, 4}, {{{0, true}}, {{1, true}}, {{0, false}}, {{1, false}}, {{0, true}}});
  Paging paging(Bytes(), 4, {&job});
  RunOver(&paging, job);
  // 0 and 1 were the only copies, then read: the host has them already.
  EXPECT_EQ(paging.totals().out_bytes, 4u + 4u);
  EXPECT_EQ(paging.totals().in_bytes, 3 * 4u);
  RunOver(&paging, job);
  EXPECT_EQ(paging.totals().out_bytes, 8u + 8u) << "what was written in the first two steps";
  PagingOptions all = Bytes();
  all.copies_clean = true;
  Paging copies(all, 4, {&job});
  RunOver(&copies, job, 2);
  EXPECT_EQ(copies.totals().in_bytes, paging.totals().in_bytes);
  EXPECT_EQ(copies.totals().out_bytes, 8 * 4u) << "each time that somebody came in";
}

TEST(Paging, TakesTheTimeOfCopiesAndOfFaults) {
  PagingOptions options = Bytes();
  options.block_bytes = 4;
  options.fault_group_ns = 100;
  options.groups_per_block = 6;
  const Workload job = Touching({8, 8}, {{{0, true}}, {{1, true}}, {{0, false}}});
  Paging paging(options, 8, {&job});
  EXPECT_EQ(paging.Touch(0, 0, 0), 0);
  EXPECT_EQ(paging.Touch(0, 1, 0), 8) << "8 bytes out; new memory is not copied";
  EXPECT_EQ(paging.Touch(0, 2, 0), 8 + 8 + 8 + 2 * 6 * 100) << "behind the earlier faults";
  EXPECT_EQ(paging.totals().fault_groups, 12u);
  EXPECT_EQ(paging.totals().busy_ns, 8 + 16 + 1200);
}

/// Each page has its own place in the order of use.
struct PageByPage {
  explicit PageByPage(size_t pages) : free(pages) {}
  void Touch(uint32_t buffer, uint64_t bytes, bool writes) {
    for (uint64_t page = 0; page < bytes; ++page) {
      const std::pair<uint32_t, uint64_t> id{buffer, page};
      const auto at = std::find(order.begin(), order.end(), id);
      if (at != order.end()) {
        order.erase(at);
      } else {
        if (free == 0) {
          out += dirty.erase(order.front());
          order.pop_front();
          ++free;
        }
        --free;
        if (known.insert(id).second) {
          dirty.insert(id);
        } else {
          ++in;
        }
      }
      order.push_back(id);
      if (writes) dirty.insert(id);
    }
  }
  void Free(uint32_t buffer) {
    const auto of = [buffer](const auto& id) { return id.first == buffer; };
    free += static_cast<size_t>(std::count_if(order.begin(), order.end(), of));
    std::erase_if(order, of);
    std::erase_if(dirty, of);
    std::erase_if(known, of);
  }
  size_t free;
  std::deque<std::pair<uint32_t, uint64_t>> order;
  std::set<std::pair<uint32_t, uint64_t>> dirty, known;
  uint64_t in = 0, out = 0;
};

/// What must come in whoever decides: evicts what is wanted again last (Belady 1966).
uint64_t Compulsory(const std::vector<std::pair<uint32_t, uint64_t>>& wanted, size_t pages) {
  std::set<std::pair<uint32_t, uint64_t>> there, known;
  uint64_t in = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (there.contains(wanted[i])) continue;
    if (there.size() == pages) {
      auto last = there.begin();
      std::ptrdiff_t furthest = -1;
      for (auto it = there.begin(); it != there.end(); ++it) {
        const auto next =
            std::find(wanted.begin() + static_cast<std::ptrdiff_t>(i), wanted.end(), *it) -
            wanted.begin();
        if (next > furthest) {
          furthest = next;
          last = it;
        }
      }
      there.erase(last);
    }
    there.insert(wanted[i]);
    if (!known.insert(wanted[i]).second) ++in;
  }
  return in;
}

TEST(Paging, IsAsIfEachPageHadItsOwnPlaceInTheOrder) {
  std::mt19937 random(1);
  const auto pick = [&random](uint32_t bound) { return random() % bound; };
  for (int round = 0; round < 200; ++round) {
    std::vector<uint64_t> buffers(2 + pick(6));
    for (uint64_t& bytes : buffers) bytes = 1 + pick(9);
    const size_t memory = 4 + pick(24);
    std::vector<std::vector<Touch>> rows;
    std::vector<std::vector<uint32_t>> freed(60);
    for (size_t i = 0; i < freed.size(); ++i) {
      rows.push_back({{static_cast<uint32_t>(pick(static_cast<uint32_t>(buffers.size()))), false}});
      rows.back()[0].writes = pick(3) == 0;
      // Those who free make no compulsory sum: half of the rounds.
      if (round % 2 == 0 && pick(5) == 0) freed[i] = {rows.back()[0].buffer};
    }
    const Workload job = Touching(buffers, rows, freed);
    Paging paging(Bytes(), memory, {&job});
    PageByPage reference(memory);
    std::vector<std::pair<uint32_t, uint64_t>> wanted;
    for (size_t k = 0; k < rows.size(); ++k) {
      paging.Touch(0, k, 0);
      paging.Ended(0, k);
      const Touch& touch = rows[k][0];
      reference.Touch(touch.buffer, buffers[touch.buffer], touch.writes);
      for (const uint32_t buffer : freed[k]) reference.Free(buffer);
      for (uint64_t page = 0; page < buffers[touch.buffer]; ++page) {
        wanted.emplace_back(touch.buffer, page);
      }
      ASSERT_EQ(paging.totals().in_bytes, reference.in) << round << " " << k;
      ASSERT_EQ(paging.totals().out_bytes, reference.out) << round << " " << k;
      ASSERT_EQ(paging.resident_bytes(), memory - reference.free);
    }
    if (round % 2 == 1) {
      EXPECT_GE(paging.totals().in_bytes, Compulsory(wanted, memory)) << round;
    }
  }
}

TEST(Paging, TwoJobsPushEachOtherOut) {
  const Workload job = Touching({6}, {{{0, true}}});
  Paging alone(Bytes(), 8, {&job});
  RunOver(&alone, job, 10);
  EXPECT_EQ(alone.totals().moved_bytes(), 0u);
  Paging both(Bytes(), 8, {&job, &job});
  for (int i = 0; i < 10; ++i) {
    for (const size_t who : {size_t{0}, size_t{1}}) both.Touch(who, 0, 0);
  }
  // Of 12 bytes 8 are there, and each job finds all of its own gone.
  EXPECT_EQ(both.totals().in_bytes, 9u * 12);
}

Result<Outcome> Together(const std::vector<const Workload*>& jobs, Units pool,
                         std::optional<PagingOptions> paging, Sharing sharing = Sharing::kMps) {
  std::vector<JobRun> runs;
  for (const Workload* job : jobs) runs.push_back({job, 0});
  Options options;
  options.gate_ns = 0;
  options.unit_bytes = 8;
  options.pool_units = pool;
  options.managed = false;
  options.paging = paging;
  Machine machine = PlainMachine();
  machine.sharing = sharing;
  machine.quantum_ns = 250;
  return Simulate(runs, machine, options);
}

TEST(Paging, SlowsDownOnlyThoseWhoDoNotFit) {
  const Workload job =
      WorkloadOf("job", {{80, 80, 80, 80}, {100, 100, 100, 100}}, PlainMachine(), Touched::kBlocks);
  for (const Sharing sharing : {Sharing::kMps, Sharing::kTimeSlice}) {
    const auto free = Together({&job, &job}, 0, std::nullopt, sharing);
    const auto fits = Together({&job, &job}, 82, Bytes(), sharing);  // two peaks of 41 units
    const auto tight = Together({&job, &job}, 60, Bytes(0.1e9), sharing);
    const auto slower = Together({&job, &job}, 60, Bytes(0.05e9), sharing);
    const auto again = Together({&job, &job}, 60, Bytes(0.1e9), sharing);
    ASSERT_TRUE(free.ok() && fits.ok() && tight.ok() && slower.ok() && again.ok());
    EXPECT_EQ(fits->elapsed_ns, free->elapsed_ns) << "to the last bit";
    EXPECT_EQ(fits->paging.moved_bytes(), 0u);
    EXPECT_LT(tight->Throughput(), 0.9 * free->Throughput());
    EXPECT_GT(tight->paging.moved_bytes(), 0u);
    EXPECT_LT(slower->Throughput(), tight->Throughput());
    EXPECT_EQ(again->elapsed_ns, tight->elapsed_ns);
    EXPECT_EQ(again->paging.moved_bytes(), tight->paging.moved_bytes());
  }
}

TEST(Paging, LeavesTheGpuToOthersWhileItWaits) {
  // One streams through a buffer that does not fit, the other computes and touches nothing.
  Workload pages = Touching({1000}, {{{0, true}}});
  pages.name = "pages";
  pages.kernels = {{100, {1, 0}, 0}};
  pages.alone_ns = 100;
  Workload computes = Touching({}, {{}});
  computes.name = "computes";
  computes.kernels = {{100, {1, 0}, 0}};
  computes.alone_ns = 100;
  const auto both = Together({&pages, &computes}, 10, Bytes());
  ASSERT_TRUE(both.ok()) << both.status().message();
  EXPECT_LT(both->jobs[0].progress, 0.1);
  EXPECT_GT(both->jobs[1].progress, 0.85);
}

TEST(Paging, RefusesWhatMakesNoSense) {
  const Workload job = WorkloadOf("job", {{80}, {100}}, PlainMachine(), Touched::kBlocks);
  PagingOptions no_link = Bytes();
  no_link.link_bytes_per_s = 0;
  PagingOptions no_pages = Bytes();
  no_pages.page_bytes = 0;
  PagingOptions small_blocks = Bytes();
  small_blocks.block_bytes = 0;
  for (const PagingOptions& paging : {no_link, no_pages, small_blocks}) {
    const auto outcome = Together({&job}, 60, paging);
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(outcome.status().message().find("paging: allowed:"), std::string::npos);
  }
  EXPECT_FALSE(Together({&job}, 0, Bytes()).ok()) << "a pool is needed";
  Options managed;
  managed.pool_units = 60;
  managed.paging = Bytes();
  EXPECT_FALSE(Simulate({{&job, 0}}, PlainMachine(), managed).ok());
}

TEST(Paging, WhatNobodyKnowsTheTouchesOfIsNotPaged) {
  const Workload job = WorkloadOf("job", {{80}, {100}});
  EXPECT_TRUE(job.touches.touch_ends.empty()) << "they are many, and few simulations page";
  const auto outcome = Together({&job}, 60, Bytes());
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.status().message(),
            "paging: nothing tells what the kernels of 'job' touch; allowed: workloads made with "
            "it (WorkloadOptions::touched)");
  EXPECT_TRUE(Together({&job}, 60, std::nullopt).ok());
}

TEST(Paging, HasTheLinkOfItsMachine) {
  Machine machine = PlainMachine();
  machine.copy_bytes_per_s = 12345;
  EXPECT_EQ(PagingOptions::Of(machine).link_bytes_per_s, 12345);
}

}  // namespace
}  // namespace sluice::scheduler::simulate
