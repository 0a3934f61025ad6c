// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <benchmark/benchmark.h>
#include <mimalloc.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <vector>

#include "bench/sequence.h"
#include "intercept/blocks/arena.h"

/// What a block costs in the client's books against what a small object costs in a fast allocator:
/// the same sequence of sizes, divided by 1024 there so that both manage as many objects in
/// cache-sized books.
namespace sluice::bench {
namespace {

constexpr uint64_t kUnitBytes = 8u << 20;
constexpr uint32_t kUnitGranules = kUnitBytes / kGranuleBytes;
constexpr uint32_t kPoolUnits = 1024;  // 8 GiB
constexpr uint64_t kScale = 1024;
constexpr int kWarmUp = 4;

// Every mark is reached: what is measured is the search, not waiting.
struct Books {
  explicit Books(bool takes_tightest) : tightest(takes_tightest) {
    if (!arena.Init(kPoolUnits, kUnitGranules)) abort();
    arena.TakeTightest(takes_tightest);
    for (std::atomic<uint64_t>& mark : marks.mark) mark.store(1);
  }
  // Leases like a client: only when nothing that is held does.
  uint32_t Allocate(uint32_t granules, uint32_t slot) {
    const uint32_t id = arena.Allocate(granules, slot, marks);
    if (id != kNoBlock) [[likely]]
      return id;
    const uint32_t units = (granules + kUnitGranules - 1) / kUnitGranules;
    const uint32_t held = arena.held_units();
    if (units > kPoolUnits - held || !arena.Grant({held, units})) return kNoBlock;
    return arena.Allocate(granules, slot, marks);
  }
  bool tightest;
  Arena arena;
  protocol::MarkPage marks{};
};

bool RunIteration(const BlockSequence& sequence, uint32_t slot, Books& books,
                  std::vector<uint32_t>& address) {
  Arena& arena = books.arena;
  for (const BlockStep& step : sequence.steps) {
    if (step.kind == BlockStep::kAlloc) {
      const auto granules = static_cast<uint32_t>((step.bytes + kGranuleBytes - 1) / kGranuleBytes);
      const uint32_t id = books.Allocate(granules, slot);
      if (id == kNoBlock) return false;
      address[step.number] = arena.block(id).start;
    } else {
      // The program frees by address.
      const uint32_t id = arena.FindLive(address[step.number]);
      // Who gives back sets nothing aside.
      if (books.tightest) {
        arena.FreeOnStream(id, slot, 1);
      } else {
        arena.FreeForReuse(id, slot, 1);
      }
    }
  }
  return true;
}

// Iterations on `streams` streams in turn. One: a stream reuses what it has freed itself. Two: each
// iteration wants what the other stream has freed and the GPU has passed. `tightest`: as behind
// gates, where a job leases anew in each iteration.
void BlocksArena(benchmark::State& state, const BlockSequence& sequence, uint32_t streams,
                 bool tightest) {
  const auto books = std::make_unique<Books>(tightest);
  std::vector<uint32_t> address(sequence.blocks);
  uint32_t turn = 0;
  const auto run = [&] { return RunIteration(sequence, turn++ % streams, *books, address); };
  bool ok = true;
  for (int i = 0; i < kWarmUp; ++i) ok = ok && run();
  for (auto _ : state) ok = ok && run();
  if (!ok) state.SkipWithError("the pool is too small for the sequence");
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * sequence.blocks));
}

void BlocksMimalloc(benchmark::State& state, const BlockSequence& sequence) {
  std::vector<void*> address(sequence.blocks);
  for (auto _ : state) {
    for (const BlockStep& step : sequence.steps) {
      if (step.kind == BlockStep::kAlloc) {
        address[step.number] = mi_malloc(step.bytes / kScale + 1);
        benchmark::DoNotOptimize(address[step.number]);
      } else {
        mi_free(address[step.number]);
      }
    }
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * sequence.blocks));
}

const int kRegistered = [] {
  for (const char* name : {"resnet50", "bert-base"}) {
    const BlockSequence sequence = ReadSequence(name);
    const std::string suffix = std::string("/") + name;
    benchmark::RegisterBenchmark(("blocks/arena" + suffix).c_str(), BlocksArena, sequence, 1,
                                 false);
    benchmark::RegisterBenchmark(("blocks/arena_tightest" + suffix).c_str(), BlocksArena, sequence,
                                 1, true);
    benchmark::RegisterBenchmark(("blocks/arena_in_turn" + suffix).c_str(), BlocksArena, sequence,
                                 2, false);
    benchmark::RegisterBenchmark(("blocks/mimalloc" + suffix).c_str(), BlocksMimalloc, sequence);
  }
  return 0;
}();

}  // namespace
}  // namespace sluice::bench
